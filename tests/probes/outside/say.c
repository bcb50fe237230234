/* A program that only says that it runs. */
#include "../probe.h"

int main(void)
{
	return verdict(0);
}
