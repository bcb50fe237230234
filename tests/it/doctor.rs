//! `aegis doctor`.

#[cfg(all(feature = "confine", target_os = "linux"))]
mod machine;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod paths;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod proposal;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod server;

#[test]
#[cfg(not(all(feature = "confine", target_os = "linux")))]
fn a_build_that_cannot_confine_says_so() {
    let ran = crate::exe::Aegis::new().arg("doctor").run();
    assert_eq!((ran.code(), ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("`confine`"), "{}", ran.stderr);
}
