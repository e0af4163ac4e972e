//! What the value at a resource looks like: who can have written it.

/// A guess at who wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A holder id of quorlock's: `label/uuid`.
    HolderId,
    /// As random as the values of other libraries are.
    Random,
    /// Something that a program would write each time: anybody may take the lock for his own (pitfall 1).
    Constant,
}

/// The shortest value of any known library is 20 bytes; 16 random bytes are what it takes.
const SHORTEST: usize = 16;
/// Random values of that length have more different bytes.
const FEWEST_LETTERS: usize = 8;

impl Form {
    pub(crate) fn of(value: &[u8]) -> Self {
        if is_holder_id(value) {
            return Self::HolderId;
        }
        let has = |kind: fn(&u8) -> bool| value.iter().any(kind);
        let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        let is_random = value.len() >= SHORTEST
            && letters(value) >= FEWEST_LETTERS
            && (has(u8::is_ascii_digit) || has(|byte| !byte.is_ascii()) || mixed);
        if is_random { Self::Random } else { Self::Constant }
    }

    /// For JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::HolderId => "holder_id",
            Self::Random => "random",
            Self::Constant => "constant",
        }
    }

    /// What a person ought to know of it.
    pub(crate) const fn remark(self) -> &'static str {
        match self {
            Self::HolderId => "",
            Self::Random => "no holder id: another client's",
            Self::Constant => "no holder id: looks constant (pitfall 1)",
        }
    }
}

fn is_holder_id(value: &[u8]) -> bool {
    const UUID: usize = 36;
    let Some(slash) = value.len().checked_sub(UUID + 1) else { return false };
    let fits = |(nth, byte): (usize, &u8)| match nth {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    slash > 0 && value[slash] == b'/' && value[slash + 1..].iter().enumerate().all(fits)
}

fn letters(value: &[u8]) -> usize {
    value.iter().collect::<std::collections::BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_known_libraries_are_random_and_constants_are_not() {
        assert_eq!(Form::of(b"web-3:1842/0f2c3a4b-1111-4222-8333-123456789abc"), Form::HolderId);
        let random: [&[u8]; 6] = [
            b"0f2c3a4b-1111-4222-8333-123456789abc", // redlock-rb, RedLock.net, Pottery
            b"d41d8cd98f00b204e9800998ecf8427e",     // node-redlock
            b"kq3VbTzAeWmXnRyUiOpLsD",               // redlock-py
            b"1B2M2Y8AsgTpgAmY7PhCfg==",             // redsync
            b"\x01\x9f\x88\x7a\xb3\x00\xff\xe1\x12\xc4\x5d\x6e\x70\x81\x92\xa3\xb4\xc5\xd6\xe7", // rslock
            b"web3_1842_0f2c3a4b111142228333123456789abc", // DistributedLock
        ];
        for value in random {
            assert_eq!(Form::of(value), Form::Random, "{}", value.escape_ascii());
        }
        let constant: [&[u8]; 8] = [
            b"",
            b"1",
            b"lock",
            b"locked",
            b"user:42",
            b"the-order-service",
            b"1111111111111111111111",
            b"/0f2c",
        ];
        for value in constant {
            assert_eq!(Form::of(value), Form::Constant, "{}", value.escape_ascii());
        }
    }
}
