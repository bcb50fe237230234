/* Asks for the keyring of the session. */
#include "probe.h"

int main(void)
{
	/* KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, make none. */
	return verdict(syscall(__NR_keyctl, 0, -3, 0));
}
