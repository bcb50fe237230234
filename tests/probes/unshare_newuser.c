/* Makes a user namespace, and with it every capability inside. */
#include "probe.h"
#include <sched.h>

int main(void)
{
	return verdict(unshare(CLONE_NEWUSER));
}
