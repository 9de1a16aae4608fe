//! Addresses that this program may call.

use http::Uri;

/// Maximum length of an address that is called.
pub const MAX_ADDRESS_BYTES: usize = 2048;

/// The reason why an address must not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not a valid address.
    #[error("not a valid address")]
    Malformed,
    /// The address has no host.
    #[error("the address has no host")]
    NoHost,
    /// The address uses plain HTTP, so an eavesdropper could read the data.
    #[error("the address is not encrypted: use `https`")]
    NotEncrypted,
    /// The address uses another scheme than HTTP.
    #[error("not an HTTP address")]
    NotHttp,
}

/// Checks that an address may be called: over TLS, or on this machine.
///
/// # Errors
/// Fails when the address must not be called.
pub fn check(address: &str) -> Result<(), AddressError> {
    if address.len() > MAX_ADDRESS_BYTES {
        return Err(AddressError::Malformed);
    }
    let uri: Uri = address.parse().map_err(|_| AddressError::Malformed)?;
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

/// Returns true if an address contains a user name or a password, which anyone who sees the address would see.
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
            ("", AddressError::Malformed),
            ("not an address", AddressError::Malformed),
            ("https://acme.com/\nX-Other: 1", AddressError::Malformed),
            (&long, AddressError::Malformed),
        ] {
            assert_eq!(check(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn credentials_in_an_address_are_detected() {
        assert!(has_credentials("https://ann:secret@acme.com/"));
        assert!(has_credentials("https://ann@acme.com/"));
        assert!(!has_credentials("https://acme.com/ann@home"));
        assert!(!has_credentials("no address"));
    }
}
