/* A number that no kernel has yet. */
#include "probe.h"

int main(void)
{
	return verdict(syscall(9999));
}
