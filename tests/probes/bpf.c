/* Makes a map of the extended BPF. */
#include "probe.h"

int main(void)
{
	/* BPF_MAP_CREATE of an array: type, key, value, entries. */
	uint32_t attributes[32] = {2, 4, 4, 1};
	return verdict(syscall(__NR_bpf, 0, attributes, sizeof attributes));
}
