//! Keys as bytes that order as the keys do.

use std::cmp::Reverse;

/// What records can be sorted by.
///
/// Numbers order by value, floating-point ones as `total_cmp` has it (so that `-0.0` comes before
/// `0.0`, and a NaN with a plus sign last); texts by their bytes, which is the order of their
/// characters; `false` before `true`; `None` before `Some`; tuples by their first elements that
/// differ; `Reverse` the other way round.
pub trait SortKey {
    /// Appends a form of the key. Forms compare, byte by byte, as the keys do, and none is the
    /// beginning of another one: so the form of a pair is the form of its first, then of its second.
    fn append_to(&self, form: &mut Vec<u8>);
}

/// A key that is put together without an allocation: of the parts that are added, the first ones
/// that differ decide.
#[derive(Debug, Default)]
pub struct KeyParts {
    form: Vec<u8>,
}

impl KeyParts {
    /// Adds a part that decides where all before it are equal.
    #[inline]
    pub fn add<K: SortKey + ?Sized>(&mut self, part: &K) {
        part.append_to(&mut self.form);
    }

    /// Begins another key.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.form.clear();
    }

    /// All parts, in their form.
    #[inline]
    pub(super) fn form(&self) -> &[u8] {
        &self.form
    }
}

/// The first bytes of a form, as a number that orders as they do; equal where they are equal.
#[inline]
pub(super) fn prefix(form: &[u8]) -> u64 {
    if let Some(first) = form.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(form) {
        *to = *from;
    }
    u64::from_be_bytes(padded)
}

macro_rules! unsigned {
    ($($number:ty)*) => { $(
        impl SortKey for $number {
            #[inline]
            fn append_to(&self, form: &mut Vec<u8>) {
                form.extend_from_slice(&self.to_be_bytes());
            }
        }
    )* };
}

macro_rules! signed {
    ($($number:ty)*) => { $(
        impl SortKey for $number {
            #[inline]
            fn append_to(&self, form: &mut Vec<u8>) {
                // As an unsigned number that is larger by half of all numbers.
                form.extend_from_slice(&(self ^ <$number>::MIN).to_be_bytes());
            }
        }
    )* };
}

macro_rules! floating {
    ($($number:ty)*) => { $(
        impl SortKey for $number {
            #[inline]
            fn append_to(&self, form: &mut Vec<u8>) {
                let bits = self.to_bits();
                let positive_max = !0 >> 1;
                // The less a negative number is, the larger are its bits.
                let ordered = if bits > positive_max { !bits } else { bits + positive_max + 1 };
                ordered.append_to(form);
            }
        }
    )* };
}

macro_rules! tuples {
    ($(($($element:ident)+))*) => { $(
        impl<$($element: SortKey),+> SortKey for ($($element,)+) {
            #[inline]
            fn append_to(&self, form: &mut Vec<u8>) {
                #[expect(non_snake_case, reason = "a variable is called as its type is")]
                let ($($element,)+) = self;
                $($element.append_to(form);)+
            }
        }
    )* };
}

unsigned!(u8 u16 u32 u64 u128);
signed!(i8 i16 i32 i64 i128);
floating!(f32 f64);
tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

impl SortKey for bool {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        form.push(u8::from(*self));
    }
}

impl SortKey for char {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        u32::from(*self).append_to(form);
    }
}

/// A zero byte is written as `00 ff`, and the end as `00 00`: the end is less than any byte.
impl SortKey for [u8] {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        let mut rest = self;
        while let Some(zero) = memchr::memchr(0, rest) {
            form.extend_from_slice(&rest[..=zero]);
            form.push(0xff);
            rest = &rest[zero + 1..];
        }
        form.extend_from_slice(rest);
        form.extend_from_slice(&[0, 0]);
    }
}

/// All have the same length, so that their bytes are their form.
impl<const N: usize> SortKey for [u8; N] {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        form.extend_from_slice(self);
    }
}

impl SortKey for Vec<u8> {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        self.as_slice().append_to(form);
    }
}

impl SortKey for str {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        self.as_bytes().append_to(form);
    }
}

impl SortKey for String {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        self.as_bytes().append_to(form);
    }
}

impl<K: SortKey> SortKey for Option<K> {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        form.push(u8::from(self.is_some()));
        if let Some(key) = self {
            key.append_to(form);
        }
    }
}

/// Of two forms of which none is the beginning of the other, the first byte that differs decides:
/// inverted, it decides the other way.
impl<K: SortKey> SortKey for Reverse<K> {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        let start = form.len();
        self.0.append_to(form);
        for byte in &mut form[start..] {
            *byte = !*byte;
        }
    }
}

impl<K: SortKey + ?Sized> SortKey for &K {
    #[inline]
    fn append_to(&self, form: &mut Vec<u8>) {
        (*self).append_to(form);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(key: &(impl SortKey + ?Sized)) -> Vec<u8> {
        let mut parts = KeyParts::default();
        parts.add(key);
        parts.form().to_vec()
    }

    fn check<K: SortKey + Ord + std::fmt::Debug>(a: &K, b: &K) {
        let (form_a, form_b) = (form(a), form(b));
        assert_eq!(form_a.cmp(&form_b), a.cmp(b), "{a:?} {b:?}");
        assert!(form_a == form_b || !form_a.starts_with(&form_b), "{a:?} {b:?}");
        assert!(prefix(&form_a).cmp(&prefix(&form_b)) as i8 * a.cmp(b) as i8 >= 0, "{a:?} {b:?}");
    }

    type Row = (Option<Vec<u8>>, Reverse<String>, (i64, bool, char));

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn forms_order_as_keys_do(a: Row, b: Row, low in 0_u8..3) {
            check(&a, &b);
            check(&(a.0.clone(), b.1.clone()), &(a.0.clone(), a.1.clone()));
            check(&(a.1.clone(), b.2), &(a.1.clone(), a.2));
            // Short ones over few bytes, which are often the beginning of another.
            let few = |bytes: &Option<Vec<u8>>| {
                bytes.iter().flatten().map(|byte| byte % (low + 1)).take(4).collect::<Vec<u8>>()
            };
            check(&(few(&a.0), a.2.1), &(few(&b.0), b.2.1));
            check(&Reverse(few(&a.0)), &Reverse(few(&b.0)));
        }

        #[test]
        fn numbers_order_by_value(a: (i8, u16, i32, u64, i128), b: (i8, u16, i32, u64, i128)) {
            check(&a, &b);
            check(&a.4, &b.4);
            check(&(a.2, a.1), &(b.2, b.1));
        }

        #[test]
        fn floats_order_as_total_cmp_has_it(a: u64, b: u64, c: u32, d: u32) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            prop_assert_eq!(form(&a).cmp(&form(&b)), a.total_cmp(&b));
            let (c, d) = (f32::from_bits(c), f32::from_bits(d));
            prop_assert_eq!(form(&c).cmp(&form(&d)), c.total_cmp(&d));
        }
    }

    #[test]
    fn the_forms_never_change() {
        assert_eq!(form("a\0b"), b"a\0\xffb\0\0");
        assert_eq!(form(&(1_u16, -1_i16)), [0, 1, 0x7f, 0xff]);
        assert_eq!(form(&[7_u8, 0]), [7, 0]);
        assert_eq!(form(&(Some(false), None::<u8>)), [1, 0, 0]);
        assert_eq!(form(&Reverse(Some('a'))), [0xfe, 0xff, 0xff, 0xff, 0x9e]);
        assert_eq!(form(&1.0_f32), [0xbf, 0x80, 0, 0]);
        let zeros = [-0.0_f64, 0.0, f64::NAN].map(|number| form(&number));
        assert!(zeros.is_sorted());
    }

    #[test]
    fn a_key_of_parts_is_the_key_of_their_tuple() {
        let mut parts = KeyParts::default();
        parts.add("text");
        parts.add(&Reverse(7_u8));
        assert_eq!(parts.form(), form(&("text", Reverse(7_u8))));
    }
}
