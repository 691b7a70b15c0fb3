//! Raw JSON: what is refused, where, and what never happens to any text.

#![expect(clippy::unwrap_used, reason = "a text that is not handled as expected fails its test")]

use proptest::prelude::*;
use rota_model::check::{Checker, MAX_NESTING};
use rota_model::json_text::{FaultKind, JsonFault, MAX_TEXT_NESTING, parse};
use serde_json::{Map, Value, json};

fn fault(text: &str) -> JsonFault {
    parse(text.as_bytes()).unwrap_err()
}

#[test]
#[rustfmt::skip] // A list of numbers reads better in rows.
fn numbers_that_survive_are_accepted() {
    for number in [
        "0", "-0", "-0.0", "0e999", "0e99999999999999999999999", "1.10", "1e2", "1E+2", "100.000", "0.1", "1e-7",
        "5e-324", "2.5", "1e22", "123e-2", "9223372036854775807", "-9223372036854775808",
        "1.7976931348623157e308", "0.30000000000000004", "1000000000000000000000000.0",
    ] {
        assert!(parse(number.as_bytes()).is_ok(), "{number}: {:?}", parse(number.as_bytes()));
    }
}

#[test]
#[rustfmt::skip] // As above.
fn numbers_that_do_not_survive_are_refused() {
    for number in [
        "12345678901234567890123", "9223372036854775808", "-9223372036854775809", "18446744073709551615",
        "1e400", "-1e400", "1e-400", "1e99999999999999999999999", "0.1000000000000000055511151231257827",
        "9007199254740993.0", "0.12345678901234567891", "123456789012345678e1",
    ] {
        let fault = fault(&format!("[{number}]"));
        assert_eq!((fault.kind, fault.offset), (FaultKind::Refused, 1), "{fault}");
        assert!(fault.detail.contains(number), "{fault}");
    }
}

#[test]
fn numbers_in_strings_are_text() {
    assert_eq!(parse(br#"{"1e400": "a \" 1e400 \\"}"#).unwrap(), json!({"1e400": "a \" 1e400 \\"}));
}

#[test]
fn a_fault_says_where_and_what_is_allowed() {
    let fault = fault("{\n  \"größe\": 99999999999999999999\n}");
    assert_eq!((fault.line, fault.column, fault.offset), (2, 12, 15));
    assert_eq!(
        fault.to_string(),
        "line 2, column 12 (byte 15): the integer 99999999999999999999 is not within -9223372036854775808 and \
         9223372036854775807"
    );
    let long = self::fault(&"9".repeat(1_000_000)).detail;
    assert!(long.contains(&format!("{}…", "9".repeat(39))) && long.len() < 200, "{long}");
}

#[test]
fn nesting_ends_where_a_batch_of_the_deepest_payloads_does() {
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let batch = |levels| format!(r#"{{"jobs":[{{"input":{{"payload":{}}}}}]}}"#, nested(levels));
    assert!(parse(batch(MAX_NESTING).as_bytes()).is_ok());
    let fault = fault(&batch(MAX_NESTING + 1));
    assert_eq!(fault.kind, FaultKind::Refused);
    assert!(fault.detail.contains(&format!("deeper than {MAX_TEXT_NESTING} levels")), "{fault}");
    assert_eq!(self::fault(&nested(1_000_000)).kind, FaultKind::Refused);
    assert_eq!(self::fault(&"[".repeat(1_000_000)).kind, FaultKind::Unreadable);
    let mut check = Checker::new();
    check.json("", &parse(nested(MAX_NESTING).as_bytes()).unwrap());
    assert_eq!(check.finish(), Ok(()));
}

#[test]
fn what_is_not_json_is_called_that_and_not_quoted() {
    for text in [
        "",
        "{",
        "{\"password\": hunter2}",
        "[1,]",
        "1 2",
        "01",
        "1-2",
        "-",
        "1.",
        "[1e400",
        "nul",
        "\"\u{1}\"",
    ] {
        let fault = fault(text);
        assert_eq!(fault.kind, FaultKind::Unreadable, "{text}: {fault}");
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
    assert_eq!(parse(b"\"\xff\"").unwrap_err().kind, FaultKind::Unreadable);
    let fault = fault("{\"a\": 1,\n \"b\" 2}");
    assert_eq!((fault.line, fault.column, fault.detail.as_str()), (2, 6, "not JSON: expected `:`"));
}

/// Values that every store can hold.
fn values() -> impl Strategy<Value = Value> {
    let floats = any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        floats.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_comes_back_as_it_was_written(value in values()) {
        let text = serde_json::to_vec(&value).unwrap();
        let back = parse(&text).unwrap();
        prop_assert_eq!(&serde_json::to_vec(&back).unwrap(), &text);
        prop_assert_eq!(back, value.clone());
        prop_assert_eq!(parse(&serde_json::to_vec_pretty(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(fault) = parse(&bytes) {
            prop_assert!(fault.offset <= bytes.len() && fault.line >= 1 && fault.column >= 1);
        }
    }

    #[test]
    fn no_text_that_looks_like_json_makes_it_panic(text in "[-+0-9.eE\\[\\]{}\",:\\\\ntu \n]{0,60}") {
        match parse(text.as_bytes()) {
            // What is accepted is what the parser reads, and it survives.
            Ok(value) => {
                let again = serde_json::to_vec(&value).unwrap();
                prop_assert_eq!(parse(&again).unwrap(), value);
            }
            Err(fault) => prop_assert!(fault.offset <= text.len()),
        }
    }

    /// The rule for numbers, stated once more by other means: the shortest decimal of a double is accepted, and the
    /// same decimal with a digit more in the eighteenth place is not.
    #[test]
    fn a_double_is_accepted_and_its_neighbour_decimal_is_not(
        mantissa in 1_000_000_000_000_000_u64..9_007_199_254_740_992,
        exponent in -200_i32..200,
    ) {
        let exact = format!("{mantissa}e{exponent}");
        let double: f64 = exact.parse().unwrap();
        let shortest = serde_json::to_string(&double).unwrap();
        prop_assert!(parse(shortest.as_bytes()).is_ok(), "{}", shortest);
        let longer = format!("{mantissa}.001e{exponent}");
        prop_assert_eq!(parse(longer.as_bytes()).unwrap_err().kind, FaultKind::Refused);
    }
}
