//! Lists of names for people.

/// Names with commas between; runs such as `NIC4, NIC5, NIC6` become `NIC4-NIC6`.
pub(super) fn shortened<S: AsRef<str>>(names: &[S]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < names.len() {
        let mut end = at;
        while end + 1 < names.len() && follows(names[end].as_ref(), names[end + 1].as_ref()) {
            end += 1;
        }
        let (first, last) = (names[at].as_ref(), names[end].as_ref());
        match end - at {
            0 => parts.push(first.to_owned()),
            1 => parts.extend([first.to_owned(), last.to_owned()]),
            _ => parts.push(format!("{first}-{last}")),
        }
        at = end + 1;
    }
    parts.join(", ")
}

/// Whether the second name is the first with a number that is one higher.
fn follows(first: &str, second: &str) -> bool {
    let (a, b) = (split(first), split(second));
    match (a.1.parse::<u64>(), b.1.parse::<u64>()) {
        (Ok(x), Ok(y)) => a.0 == b.0 && y == x.saturating_add(1),
        _ => false,
    }
}

/// A name in two: what stands before the number at its end, and that number.
fn split(name: &str) -> (&str, &str) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name.split_at(name.len() - digits)
}

/// A key that sorts `mlx5_10` after `mlx5_9`.
pub(super) fn natural(name: &str) -> (String, u64) {
    let (letters, digits) = split(name);
    (letters.to_owned(), digits.parse().unwrap_or(0))
}

/// `1 port`, `2 ports`.
pub(super) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_shortened() {
        assert_eq!(shortened(&["NIC4", "NIC5", "NIC6", "NIC9"]), "NIC4-NIC6, NIC9");
        assert_eq!(shortened(&["mlx5_0", "mlx5_1"]), "mlx5_0, mlx5_1");
        assert_eq!(shortened::<&str>(&[]), "");
    }
}
