"""Work in processes of this machine, or on a cluster; tasks that fail cost themselves alone."""
