//! What each role may do with the tables, as statements that an administrator runs: derived from who may touch what.
//!
//! Compare-and-set reads what it compares: whoever may write a table here may also read it. So the recorder can see what it
//! writes, though the seed has it write only; in the program its types still have no verb for that.

use std::fmt::Write as _;

use rota_store::collection::{ALL, Collection, USERS};
use rota_store::rights::{Right, Role};

use crate::names::{has_register, quoted, register_table, table};

/// Of nobody's documents: numbers, totals, and what is known of the database itself. Whoever opens the store needs them.
const OWN: [(&str, &str); 3] =
    [("facts", "SELECT"), ("sequences", "SELECT, INSERT, UPDATE"), ("counts", "SELECT, INSERT, DELETE")];

/// People who look, by the views: at what is shown to people, without who they are.
const READER: &str = "reader";

/// The statements. What was granted before is taken back first, in one transaction: nobody at work notices.
pub fn grants(prefix: &str) -> String {
    let roles = Role::ALL.map(|role| name(prefix, role.name()));
    let reader = name(prefix, READER);
    let (each, all) = (roles.join(", "), format!("{}, {reader}", roles.join(", ")));
    let mut sql = format!(
        "-- What each role may do. It may be run again, and must be after an upgrade of the tables.\n\
         -- A login has the rights of the roles that it is a member of: GRANT {} TO alice;\n\
         BEGIN;\n",
        roles[0]
    );
    for role in roles.iter().chain([&reader]) {
        sql.push_str(&creation(role));
    }
    let usage = format!("GRANT USAGE ON SCHEMA %I TO {all}");
    let _ = writeln!(sql, "DO $$BEGIN EXECUTE format('{usage}', current_schema()); END$$;");
    let _ = writeln!(sql, "REVOKE ALL ON {} FROM {all};", relations().join(", "));
    for (own, rights) in OWN {
        let _ = writeln!(sql, "GRANT {rights} ON {own} TO {each};");
    }
    for collection in ALL {
        sql.push_str(&of_collection(prefix, collection));
    }
    sql.push_str("COMMIT;\n");
    sql
}

fn name(prefix: &str, role: &str) -> String {
    quoted(&format!("{prefix}_{role}"))
}

/// Roles belong to all databases of a server: there may be one of the name.
fn creation(role: &str) -> String {
    let plain = role.trim_matches('"').replace('\'', "''");
    format!(
        "DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{plain}') THEN CREATE ROLE {role} NOLOGIN; \
         END IF; END$$;\n"
    )
}

/// Everything that rights are about.
fn relations() -> Vec<String> {
    let own = OWN.into_iter().map(|(own, _)| own.to_owned());
    let of_collection = |collection: &'static Collection| {
        let register = has_register(collection).then(|| register_table(collection));
        [table(collection), quoted(collection.name)].into_iter().chain(register)
    };
    own.chain(ALL.into_iter().flat_map(of_collection)).collect()
}

fn of_collection(prefix: &str, collection: &Collection) -> String {
    let mut sql = format!("-- {}\n", collection.name);
    for role in Role::ALL {
        let (right, role) = (role.right(collection), name(prefix, role.name()));
        let granted = match right {
            Right::Nothing => continue,
            Right::Reads => "SELECT",
            Right::Writes => "SELECT, INSERT, UPDATE, DELETE",
        };
        let _ = writeln!(sql, "GRANT {granted} ON {} TO {role};", table(collection));
        if has_register(collection) {
            let _ = writeln!(sql, "GRANT {granted} ON {} TO {role};", register_table(collection));
        }
    }
    let shown = Role::ALL.into_iter().filter(|role| role.right(collection) >= Right::Reads);
    let mut shown: Vec<String> = shown.map(|role| name(prefix, role.name())).collect();
    let is_for_people = Role::Web.right(collection) >= Right::Reads && *collection != USERS;
    shown.extend(is_for_people.then(|| name(prefix, READER)));
    let _ = writeln!(sql, "GRANT SELECT ON {} TO {};", quoted(collection.name), shown.join(", "));
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who gets more or less than before is seen in the review.
    #[test]
    fn golden_grants() {
        let (text, path) = (grants("rota"), concat!(env!("CARGO_MANIFEST_DIR"), "/golden/grants.sql"));
        if std::env::var_os("ROTA_BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(path).unwrap_or_default();
        assert!(golden == text, "rights changed: look at it, then run `cargo xtask bless`\n\n{text}");
    }
}
