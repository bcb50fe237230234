/* Whoever listens answers one byte with another: an attempt is open when that
 * answer came. */
#include "attempts.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static void answer_in_time(int socket)
{
	struct timeval limit = {10, 0};
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int answered(int socket)
{
	char byte;
	ssize_t got = recv(socket, &byte, 1, 0);
	if (got == 0) {
		puts("blocked EOF");
		return 0;
	}
	return verdict(got);
}

static int exchange(int socket, const void *to, socklen_t size)
{
	if (socket < 0)
		return blocked(errno);
	answer_in_time(socket);
	if (connect(socket, to, size) || send(socket, "x", 1, MSG_NOSIGNAL) < 0)
		return blocked(errno);
	return answered(socket);
}

static struct sockaddr_in ipv4(char **with)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	if (inet_pton(AF_INET, with[0], &to.sin_addr) != 1)
		unprepared(with[0]);
	to.sin_port = htons(atoi(with[1]));
	return to;
}

static int inet(char **with, int type, int protocol)
{
	struct sockaddr_in to = ipv4(with);
	return exchange(socket(AF_INET, type, protocol), &to, sizeof to);
}

static int tcp(char **with)
{
	return inet(with, SOCK_STREAM, 0);
}

static int mptcp(char **with)
{
	return inet(with, SOCK_STREAM, IPPROTO_MPTCP);
}

static int udp(char **with)
{
	return inet(with, SOCK_DGRAM, 0);
}

static int tcp6(char **with)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6};
	if (inet_pton(AF_INET6, with[0], &to.sin6_addr) != 1)
		unprepared(with[0]);
	to.sin6_port = htons(atoi(with[1]));
	return exchange(socket(AF_INET6, SOCK_STREAM, 0), &to, sizeof to);
}

static int fastopen(char **with)
{
	struct sockaddr_in to = ipv4(with);
	int sender = socket(AF_INET, SOCK_STREAM, 0);
	if (sender < 0)
		return blocked(errno);
	answer_in_time(sender);
	if (sendto(sender, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&to, sizeof to) < 0)
		return blocked(errno);
	return answered(sender);
}

static int fastopen_connect(char **with)
{
	struct sockaddr_in to = ipv4(with);
	int on = 1;
	int sender = socket(AF_INET, SOCK_STREAM, 0);
	if (sender < 0 ||
	    setsockopt(sender, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on))
		return blocked(errno);
	return exchange(sender, &to, sizeof to);
}

/* Asks the proxy that the variable names. */
static int by_proxy(char **with)
{
	const char *proxy = getenv("HTTP_PROXY");
	char text[256];
	if (!proxy)
		return blocked(ENOENT);
	struct sockaddr_in to = {.sin_family = AF_INET};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(atoi(strrchr(proxy, ':') + 1));
	int sender = socket(AF_INET, SOCK_STREAM, 0);
	answer_in_time(sender);
	if (connect(sender, (void *)&to, sizeof to))
		return blocked(errno);
	int length = snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			      with[0], with[0]);
	if (send(sender, text, length, MSG_NOSIGNAL) < 0)
		return blocked(errno);
	/* HTTP/1.1 200: the status starts at the tenth byte. */
	memset(text, 0, sizeof text);
	for (size_t got = 0; !strstr(text, "\r\n\r\n") && got < sizeof text - 1; got++)
		if (recv(sender, text + got, 1, 0) != 1)
			break;
	int status = strlen(text) > 9 ? atoi(text + 9) : 0;
	if (status != 200)
		return blocked(status ? status : ECONNRESET);
	if (send(sender, "x", 1, MSG_NOSIGNAL) < 0)
		return blocked(errno);
	return answered(sender);
}

/* A datagram to an address that was never connected to. */
static int udp_unconnected(char **with)
{
	struct sockaddr_in to = ipv4(with);
	int sender = socket(AF_INET, SOCK_DGRAM, 0);
	if (sender < 0)
		return blocked(errno);
	struct timeval soon = {1, 0};
	setsockopt(sender, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
	if (sendto(sender, "x", 1, 0, (void *)&to, sizeof to) < 0)
		return blocked(errno);
	return answered(sender);
}

static int named(char **with, int type)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strncpy(to.sun_path, with[0], sizeof to.sun_path - 1);
	return exchange(socket(AF_UNIX, type, 0), &to, sizeof to);
}

static int path(char **with)
{
	return named(with, SOCK_STREAM);
}

static int abstract(char **with)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t length = strlen(with[0]);
	memcpy(to.sun_path + 1, with[0], length);
	return exchange(socket(AF_UNIX, SOCK_STREAM, 0), &to,
			offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int pair(char **with, int type)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int pair[2];
	strncpy(to.sun_path, with[0], sizeof to.sun_path - 1);
	if (socketpair(AF_UNIX, type, 0, pair))
		return blocked(errno);
	return verdict(sendto(pair[0], "x", 1, MSG_NOSIGNAL, (void *)&to, sizeof to));
}

static int datagram_pair(char **with)
{
	return pair(with, SOCK_DGRAM);
}

/* Neither sent elsewhere nor connected anew, not even when the other end has
 * gone. */
static int connected_pair(char **with, int type)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int pair[2];
	strncpy(to.sun_path, with[0], sizeof to.sun_path - 1);
	if (socketpair(AF_UNIX, type, 0, pair))
		return blocked(errno);
	/* Of packets the address is not looked at: they go to the other end. */
	if ((type == SOCK_STREAM &&
	     sendto(pair[0], "x", 1, MSG_NOSIGNAL, (void *)&to, sizeof to) >= 0) ||
	    !connect(pair[0], (void *)&to, sizeof to))
		return verdict(0);
	shutdown(pair[0], SHUT_RDWR);
	close(pair[1]);
	connect(pair[0], &none, sizeof none);
	return verdict(connect(pair[0], (void *)&to, sizeof to));
}

static int stream_pair(char **with)
{
	return connected_pair(with, SOCK_STREAM);
}

static int packet_pair(char **with)
{
	return connected_pair(with, SOCK_SEQPACKET);
}

/* Waits for others, at a port that the kernel chooses. */
static int bind_and_listen(char **with)
{
	struct sockaddr_in at = ipv4(with);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (void *)&at, sizeof at))
		return blocked(errno);
	return verdict(listen(listener, 1));
}

static int listen_unbound(char **with)
{
	(void)with;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0)
		return blocked(errno);
	return verdict(listen(listener, 1));
}

/* A family by its number: whether there may be a socket of it at all. */
static int family(char **with)
{
	return verdict(socket(atoi(with[0]), atoi(with[1]), atoi(with[2])));
}

ATTEMPTS(
	{"tcp", 2, tcp}, {"tcp6", 2, tcp6}, {"mptcp", 2, mptcp}, {"udp", 2, udp},
	{"udp-unconnected", 2, udp_unconnected}, {"fastopen", 2, fastopen},
	{"by-proxy", 1, by_proxy}, {"fastopen-connect", 2, fastopen_connect}, {"path", 1, path},
	{"abstract", 1, abstract}, {"datagram-pair", 1, datagram_pair},
	{"stream-pair", 1, stream_pair},
	{"packet-pair", 1, packet_pair}, {"bind-and-listen", 2, bind_and_listen},
	{"listen-unbound", 0, listen_unbound}, {"family", 3, family})
