//! Addresses that this program may call.

use http::Uri;

/// Longest address that is called.
pub const MAX_ADDRESS_BYTES: usize = 2048;

/// Why a text is no address that may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It cannot be read as one.
    #[error("it is no address")]
    Form,
    /// It does not say whom to call.
    #[error("it names no host")]
    NoHost,
    /// Whoever listens on the way could read what is sent.
    #[error("it is not encrypted: write `https`")]
    NotEncrypted,
    /// It is called in another way.
    #[error("it is no HTTP address")]
    NotHttp,
}

/// Checks that an address may be called: over TLS, or on this machine.
///
/// # Errors
/// When it is not such an address.
pub fn check(address: &str) -> Result<(), AddressError> {
    if address.len() > MAX_ADDRESS_BYTES {
        return Err(AddressError::Form);
    }
    let uri: Uri = address.parse().map_err(|_| AddressError::Form)?;
    let host = uri.host().ok_or(AddressError::NoHost)?;
    if host.is_empty() {
        return Err(AddressError::NoHost);
    }
    let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if here => Ok(()),
        Some("http") => Err(AddressError::NotEncrypted),
        Some(_) | None => Err(AddressError::NotHttp),
    }
}

/// Whether an address has a name or a password before its host. Whoever sees it would see them.
#[must_use]
pub fn has_credentials(address: &str) -> bool {
    let uri: Result<Uri, _> = address.parse();
    let authority = uri.ok().and_then(|uri| uri.authority().cloned());
    authority.is_some_and(|authority| authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_or_local_addresses_may_be_called() {
        for good in [
            "https://acme.example/cra-events",
            "https://acme.com:8443/a?b=c",
            "http://localhost:8080/",
            "http://127.0.0.1/x",
            "http://[::1]:80/",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let long = format!("https://acme.com/{}", "a".repeat(MAX_ADDRESS_BYTES));
        for (bad, why) in [
            ("http://acme.com/", AddressError::NotEncrypted),
            ("http://localhost.evil.example/", AddressError::NotEncrypted),
            ("http://127.0.0.1.evil.example/", AddressError::NotEncrypted),
            ("http://127.0.0.1@evil.example/", AddressError::NotEncrypted),
            ("ftp://acme.com/", AddressError::NotHttp),
            ("/check", AddressError::NoHost),
            ("", AddressError::Form),
            ("not an address", AddressError::Form),
            ("https://acme.com/\nX-Other: 1", AddressError::Form),
            (&long, AddressError::Form),
        ] {
            assert_eq!(check(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn a_name_or_a_password_in_an_address_is_seen() {
        assert!(has_credentials("https://ann:secret@acme.com/"));
        assert!(has_credentials("https://ann@acme.com/"));
        assert!(!has_credentials("https://acme.com/ann@home"));
        assert!(!has_credentials("no address"));
    }
}
