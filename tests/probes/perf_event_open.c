/* Counts what this process does. */
#include "probe.h"

int main(void)
{
	/* PERF_TYPE_SOFTWARE, size, PERF_COUNT_SW_TASK_CLOCK, and exclude_kernel
	 * as far as bits go. */
	uint32_t attributes[32] = {1, sizeof attributes, 1};
	((uint64_t *)attributes)[5] = 1 << 5 | 1 << 6;
	return verdict(syscall(__NR_perf_event_open, attributes, 0, -1, -1, 0));
}
