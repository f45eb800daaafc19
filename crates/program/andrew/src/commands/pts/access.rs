//! The five privacy flags of an entry as letters, as in `S-M--` (docs/protocol/ptserver.md "4. Access control inside
//! PR").

/// Letters at each of the five positions, with their bits: for everyone, and for members.
const PLACES: [(char, u32, char, u32); 5] = [
    ('S', 0x80, 's', 0x40),
    ('O', 0x20, 'O', 0x20),
    ('M', 0x10, 'm', 0x08),
    ('A', 0x04, 'a', 0x02),
    ('r', 0x01, 'r', 0x01),
];

/// The letters of some bits.
pub(super) fn letters(flags: u32) -> String {
    let letter = |(anyone, any_bit, members, member_bit): (char, u32, char, u32)| match flags {
        flags if flags & any_bit != 0 => anyone,
        flags if flags & member_bit != 0 => members,
        _ => '-',
    };
    PLACES.into_iter().map(letter).collect()
}

/// The bits of five letters, each at its position or a dash; `None` if they are invalid.
pub(super) fn bits(letters: &str) -> Option<u32> {
    if letters.chars().count() != PLACES.len() {
        return None;
    }
    let places = letters.chars().zip(PLACES);
    places
        .map(|(letter, (anyone, any_bit, members, member_bit))| match letter {
            '-' => Some(0),
            // Members may do what everyone may.
            _ if letter == anyone => Some(any_bit | member_bit),
            _ if letter == members => Some(member_bit),
            _ => None,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits() {
        for (text, flags) in
            [("S----", 0x80), ("S-M--", 0x90), ("s-mar", 0x4b), ("SOMAr", 0xff), ("-----", 0)]
        {
            assert_eq!(letters(flags), text);
            assert_eq!(bits(text).map(letters).as_deref(), Some(text));
        }
        for wrong in ["", "S", "S-M---", "x----", "-S---", "S-M-R", "ſ----"] {
            assert_eq!(bits(wrong), None, "{wrong}");
        }
    }
}
