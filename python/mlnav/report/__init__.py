"""Reports of campaigns: pages, charts, tables and pictures."""
