/* One inference of a network's generated C code under callgrind: `mlnav bench instructions` compiles this with it.
 *   count_network GROUND RISK: raw float32 in and out, GROUND_VALUES and RISK_VALUES of them */
#include <stdio.h>
#include <valgrind/callgrind.h>

void network(const float* ground, float* risk);

static float ground[GROUND_VALUES];
static float risk[RISK_VALUES];

int main(int argc, char** argv) {
  FILE* file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL || fread(ground, sizeof ground, 1, file) != 1) return 1;
  fclose(file);
  CALLGRIND_TOGGLE_COLLECT;
  network(ground, risk);
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT("network 1");
  file = fopen(argv[2], "wb");
  return file == NULL || fwrite(risk, sizeof risk, 1, file) != 1 || fclose(file) != 0;
}
