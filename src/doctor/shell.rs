//! Paths in commands that are meant to be pasted.

use std::path::Path;

/// `path` as one word of a shell, of which no option comes.
pub(super) fn word(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes.starts_with(b"-") {
        true => quoted(&[b"./", bytes].concat()),
        false => quoted(bytes),
    }
}

/// Any argument as one word of a shell. What would not show as itself is spelt
/// `$'\xhh'`, which bash, zsh and ksh know.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(byte);
    let is_shown = |byte: &u8| matches!(byte, b' '..=b'~');
    let text = String::from_utf8_lossy(bytes);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        text.into_owned()
    } else if bytes.iter().all(|byte| is_shown(byte) && *byte != b'\'') {
        format!("'{text}'")
    } else {
        let spelt: String = bytes
            .iter()
            .map(|byte| match byte {
                b'\'' | b'\\' => format!("\\x{byte:02x}"),
                byte if is_shown(byte) => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            })
            .collect();
        format!("$'{spelt}'")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_path_is_one_word_and_stays_itself() {
        for (path, expected) in [
            (&b"/a/b-c.d"[..], "/a/b-c.d"),
            (b"/a b/$x", "'/a b/$x'"),
            (b"/it's", "$'/it\\x27s'"),
            (b"-rf", "./-rf"),
            (b"/\xffa\n\\", "$'/\\xffa\\x0a\\x5c'"),
            ("/é".as_bytes(), "$'/\\xc3\\xa9'"),
        ] {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            assert_eq!(word(path), expected);
        }
    }
}
