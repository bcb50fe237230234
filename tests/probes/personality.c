/* Makes what is readable executable. */
#include "probe.h"
#include <sys/personality.h>

int main(void)
{
	return verdict(personality(READ_IMPLIES_EXEC));
}
