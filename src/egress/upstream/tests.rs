use super::*;

#[test]
fn a_proxy_is_read() {
    for (text, shown, login) in [
        ("http://proxy.example:3128", "proxy.example:3128", None),
        ("HTTP://Proxy.example:3128/", "proxy.example:3128", None),
        ("http://10.0.0.1:80", "10.0.0.1:80", None),
        ("http://[::1]:80", "[::1]:80", None),
        // The examples of RFC 7617 §2 and §2.1.
        (
            "http://Aladdin:open%20sesame@p:1",
            "p:1",
            Some("QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ),
        ("http://test:123%C2%A3@p:1", "p:1", Some("dGVzdDoxMjPCow==")),
        ("http://user:@p:1", "p:1", Some("dXNlcjo=")),
        ("http://u:%40%3a%2F%25@p:1", "p:1", Some("dTpAOi8l")),
    ] {
        let upstream: Upstream = text.parse().unwrap();
        assert_eq!(upstream.to_string(), format!("upstream proxy {shown}"));
        let has = upstream.login.as_ref().map(|login| login.as_str());
        assert_eq!(has, login, "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in [
        "",
        "proxy:80",
        "https://proxy:80",
        "socks5://proxy:80",
        "http://",
        "http://proxy",
        "http://proxy:0",
        "http://127.1:80",
        "http://proxy:80/x",
        "http://proxy:80?x",
        "http://proxy:80//",
        "http://user@proxy:80",
        "http://:secret@proxy:80",
        "http://a%3Ab:secret@proxy:80",
        "http://user:se:cret@proxy:80",
        "http://user:se@cret@proxy:80",
        "http://user:secret%0d@proxy:80",
        "http://user:secret%4@proxy:80",
        "http://user:secret%zz@proxy:80",
        "http://user:secret@",
    ] {
        let fault = text.parse::<Upstream>().unwrap_err();
        assert!(!fault.to_string().contains("secret"), "{text}: {fault}");
    }
}

#[test]
fn a_login_is_bounded() {
    let of = |bytes: usize| format!("http://u:{}@p:1", "x".repeat(bytes - 2)).parse::<Upstream>();
    assert!(of(MAX_LOGIN_BYTES).is_ok());
    assert_eq!(of(MAX_LOGIN_BYTES + 1).unwrap_err(), UpstreamFault::Login);
}

#[test]
fn the_login_is_never_shown() {
    let upstream: Upstream = "http://user:secret@p:1".parse().unwrap();
    let shown = format!("{upstream} {upstream:?}");
    assert!(
        !shown.contains("user") && !shown.contains("secret"),
        "{shown}"
    );
    assert!(!shown.contains(upstream.login.unwrap().as_str()), "{shown}");
}

/// The vectors of RFC 4648 §10.
#[test]
fn base64_is_that_of_the_standard() {
    for (plain, coded) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(*base64(plain.as_bytes()), coded);
    }
}
