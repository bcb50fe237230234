/* read of the x32 ABI: has the architecture of x86_64. Reads nothing. */
#include "probe.h"

int main(void)
{
	return verdict(syscall(0x40000000L | 0, 0, NULL, 0));
}
