//! The API as a caller sees it: what works, and what one is told when it does not.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use axum::body::Body;
use axum::http::{Request, header};
use rota_model::user::Role;
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Answer, Stage, stage};

const JOBS: &str = "/api/v1/domains/default/jobs";

fn job(name: &str) -> Value {
    json!({"jobName": name, "input": {"type": "wait", "payload": {"millis": 1}}})
}

#[tokio::test]
async fn a_job_is_answered_as_it_is_stored_and_can_be_waited_for() {
    let stage = stage().await;
    let made = stage.post(JOBS, job("first")).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["status"], "QUEUED");
    let path = format!("{JOBS}/{}", made.body["jobId"].as_str().unwrap());
    assert_eq!(made.headers[header::LOCATION], path);
    let ended = stage.get(&format!("{path}?wait=30s")).await;
    assert_eq!(ended.body["status"], "SUCCESSFUL", "{}", ended.body);
    assert_eq!(ended.body["result"], json!({"waitedMillis": 1}));
    assert_ne!(ended.headers[header::ETAG], made.headers[header::ETAG]);
    assert_eq!(stage.get("/api/ping").await.body, "pong");
}

#[tokio::test]
async fn a_domain_has_a_weight_that_can_be_set() {
    let stage = stage().await;
    let made = stage.post("/api/v1/domains", json!({"name": "heavy", "weight": 3})).await;
    assert_eq!((made.status.as_u16(), &made.body["weight"]), (201, &json!(3)), "{}", made.body);
    let path = "/api/v1/domains/heavy";
    let seen = stage.get(path).await;
    assert_eq!(seen.body, made.body);
    for (status, body) in [
        (422, json!({"weight": 0})),
        (422, json!({"weight": 1_001})),
        (422, json!({"weight": "much"})),
        (422, json!({"wait": 3})),
        (200, json!({"weight": 1_000})),
        (200, json!({})),
    ] {
        let answer = stage.call("PUT", path, Some(KEY), Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    let unset = stage.get(path).await;
    assert_eq!((&unset.body["weight"], &unset.body["created"]), (&json!(null), &made.body["created"]));
    assert_ne!(unset.headers[header::ETAG], seen.headers[header::ETAG]);
    let stale = Request::put(path)
        .header(header::AUTHORIZATION, format!("Bearer {KEY}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::IF_MATCH, &seen.headers[header::ETAG])
        .body(Body::from(r#"{"weight": 7}"#))
        .unwrap();
    assert_eq!(stage.send(stale).await.status, 412);
    let refused = stage.post("/api/v1/domains", json!({"name": "odd", "weight": 0})).await;
    assert_eq!((refused.status.as_u16(), &refused.body["errors"][0]["pointer"]), (422, &json!("/weight")));
    assert_eq!(stage.get("/api/v1/domains/odd").await.status, 404);
}

#[tokio::test]
async fn paths_and_queries_that_make_no_sense_are_told_so() {
    let stage = stage().await;
    for (status, path) in [
        (404, "/api/v1/nothing"),
        (404, "/api/v1/domains/default/jobs/not-a-uuid"),
        (404, "/api/v1/domains/default/jobs/11111111-1111-7111-8111-111111111111"),
        (404, "/api/v1/domains/No%20Such/jobs"),
        (422, "/api/v1/domains/default/jobs?limit=0"),
        (422, "/api/v1/domains/default/jobs?limit=1001"),
        (422, "/api/v1/domains/default/jobs?limit=many"),
        (422, "/api/v1/domains/default/jobs?colour=red"),
        (422, "/api/v1/domains/default/jobs?status=TIRED"),
        (422, "/api/v1/domains/default/jobs?cursor=elsewhere"),
        (422, "/api/v1/domains/default/jobs?section=-1"),
        (422, "/api/v1/domains/default/jobs?createdAfter=yesterday"),
        (
            200,
            "/api/v1/domains/default/jobs?createdAfter=-9223372036854775808&createdBefore=9223372036854775807",
        ),
        (422, "/api/v1/domains/default/jobs/11111111-1111-7111-8111-111111111111?wait=1y"),
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.body);
        assert!(status == 200 || answer.body["status"] == status, "{path}");
    }
    assert_eq!(stage.call("PATCH", JOBS, Some(KEY), None).await.status, 405);
}

#[tokio::test]
async fn lists_go_by_page_newest_first_and_by_filter() {
    let stage = stage().await;
    for n in 0..7 {
        stage.post(JOBS, job(&format!("job {n}"))).await;
    }
    let (mut names, mut path) = (Vec::new(), format!("{JOBS}?limit=3"));
    loop {
        let page = stage.get(&path).await;
        let items = page.body["items"].as_array().unwrap();
        names.extend(items.iter().map(|job| job["jobName"].as_str().unwrap().to_owned()));
        let Some(next) = page.body["next"].as_str() else { break };
        path = format!("{JOBS}?limit=3&cursor={next}");
    }
    assert_eq!(names, (0..7).rev().map(|n| format!("job {n}")).collect::<Vec<_>>());
    let one = stage.get(&format!("{JOBS}?name=job%204&type=wait")).await;
    assert_eq!(one.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(stage.get(&format!("{JOBS}?type=noop")).await.body["items"], json!([]));
    let all = stage.get(JOBS).await.body["items"].as_array().unwrap().clone();
    let found = async |query: &str| {
        let page = stage.get(&format!("{JOBS}?{query}")).await;
        page.body["items"].as_array().unwrap_or_else(|| panic!("{query}: {}", page.body)).len()
    };
    let section = all[0]["section"].as_u64().unwrap();
    let there = all.iter().filter(|job| job["section"] == section).count();
    assert_eq!(found(&format!("section={section}")).await, there);
    let at = all[3]["metadata"]["createdAt"].as_i64().unwrap();
    let of = |order: std::cmp::Ordering| {
        all.iter().filter(|job| job["metadata"]["createdAt"].as_i64().unwrap().cmp(&at) == order).count()
    };
    assert_eq!(found(&format!("createdAfter={at}")).await, of(std::cmp::Ordering::Greater));
    assert_eq!(found(&format!("createdBefore={at}")).await, of(std::cmp::Ordering::Less));
}

#[tokio::test]
async fn jobs_are_found_by_words_of_their_name() {
    let stage = stage().await;
    for name in ["Nightly report", "nightly backup", "report-2"] {
        stage.post(JOBS, job(name)).await;
    }
    let found = async |text: &str| {
        let page = stage.get(&format!("{JOBS}?text={text}")).await;
        page.body["items"].as_array().unwrap_or_else(|| panic!("{}", page.body)).len()
    };
    assert_eq!(found("NIGHTLY").await, 2);
    assert_eq!(found("nightly+report").await, 1);
    assert_eq!(found("night").await, 0);
    assert_eq!(found("night*").await, 2);
    for text in ["", "%20", "*", "%21%3F", &"word+".repeat(33)] {
        let refused = stage.get(&format!("{JOBS}?text={text}")).await;
        assert_eq!(refused.status, 422, "{text:?}: {}", refused.body);
        assert_eq!(refused.body["errors"][0]["pointer"], "/text", "{}", refused.body);
    }
}

#[tokio::test]
async fn an_idempotency_key_gives_the_first_answer() {
    let stage = stage().await;
    let send = |body: Value| {
        let request = Request::post(JOBS)
            .header(header::AUTHORIZATION, format!("Bearer {KEY}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", "order-17");
        stage.send(request.body(Body::from(body.to_string())).unwrap())
    };
    let (first, again) = (send(job("a")).await, send(job("a")).await);
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.body["jobId"], again.body["jobId"]);
    assert_eq!(send(job("b")).await.status, 409);
    assert_eq!(stage.get(JOBS).await.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_browser_signs_in_once_with_the_code_and_out_again() {
    let stage = stage().await;
    let code = stage.app.sign_in_code.issue(&stage.surroundings);
    let in_with = |body: Value| stage.call_json("/api/v1/session", body);
    assert_eq!(in_with(json!({"code": "guessed"})).await.status, 401);
    let signed_in = in_with(json!({"code": code})).await;
    assert_eq!((signed_in.status.as_u16(), &signed_in.body["user"]), (200, &json!("local:admin")));
    let cookie = signed_in.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    for attribute in ["HttpOnly", "Secure", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert_eq!(in_with(json!({"code": code})).await.status, 401, "it is good once");

    let pair = cookie.split(';').next().unwrap();
    let with_cookie = |method: &str, path: &str, origin: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path).header(header::COOKIE, pair);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        request.header(header::HOST, "127.0.0.1:7682").body(Body::empty()).unwrap()
    };
    assert_eq!(stage.send(with_cookie("GET", JOBS, None)).await.status, 200);
    assert_eq!(stage.send(with_cookie("GET", JOBS, Some("http://127.0.0.1:7682"))).await.status, 200);
    assert_eq!(stage.send(with_cookie("GET", JOBS, Some("http://evil.example"))).await.status, 403);
    assert_eq!(stage.send(with_cookie("DELETE", "/api/v1/session", None)).await.status, 204);
    assert_eq!(stage.send(with_cookie("GET", JOBS, None)).await.status, 401);
    assert_eq!(in_with(json!({"api_key": KEY})).await.status, 200);
    assert_eq!(in_with(json!({"api_key": "rota_wrong_wrong_wrong"})).await.status, 401);
    assert_eq!(in_with(json!({})).await.status, 422);
}

#[tokio::test]
async fn a_session_carries_no_more_than_the_key_it_was_made_from() {
    let stage = stage().await;
    let made = stage.post("/api/v1/users/local:admin/keys", json!({"name": "look", "role": "viewer"})).await;
    assert_eq!(made.status, 201);
    let limited = made.body["key"].as_str().unwrap();
    assert!(limited.starts_with("rota_"));
    let signed_in = stage.call_json("/api/v1/session", json!({"api_key": limited})).await;
    assert_eq!(signed_in.body["installation_admin"], false);
    let cookie =
        signed_in.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let request = Request::post(JOBS)
        .header(header::COOKIE, &cookie)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(job("x").to_string()))
        .unwrap();
    assert_eq!(stage.send(request).await.status, 403);
    let look = || Request::get(JOBS).header(header::COOKIE, &cookie).body(Body::empty()).unwrap();
    assert_eq!(stage.send(look()).await.status, 200);
    let session_key = cookie.split_once('=').unwrap().1;
    let another = stage.call_json("/api/v1/session", json!({"api_key": session_key})).await;
    assert_eq!(another.status, 403, "a session makes no other");
    let key = stage
        .call("POST", "/api/v1/users/local:admin/keys", Some(session_key), Some(json!({"name": "k"})))
        .await;
    assert_eq!(key.status, 403, "nor a key that would outlive it");
    let id = made.body["info"]["id"].as_str().unwrap();
    let revoked =
        stage.call("DELETE", &format!("/api/v1/users/local:admin/keys/{id}"), Some(KEY), None).await;
    assert_eq!(revoked.status, 204);
    assert_eq!(stage.send(look()).await.status, 401, "it ends with its key");
}

#[tokio::test]
async fn a_session_ends_no_later_than_its_key() {
    let stage = stage().await;
    let soon = stage.surroundings.now().plus(std::time::Duration::from_secs(60)).to_date();
    let new = json!({"name": "short", "expires": soon.to_string()});
    let made = stage.post("/api/v1/users/local:admin/keys", new).await;
    stage.call_json("/api/v1/session", json!({"api_key": made.body["key"]})).await;
    let keys = stage.get("/api/v1/users/local:admin/keys").await.body;
    let session =
        keys["items"].as_array().unwrap().iter().find(|key| key["session"] == true).unwrap().clone();
    assert_eq!(session["expires"], json!(soon.to_string()));
}

#[tokio::test]
async fn keys_are_shown_once_and_no_answer_holds_a_hash() {
    let stage = stage().await;
    let made = stage.post("/api/v1/users/local:admin/keys", json!({"name": "laptop"})).await;
    let key = made.body["key"].as_str().unwrap();
    assert_eq!(stage.call("GET", JOBS, Some(key), None).await.status, 200);
    for path in
        ["/api/v1/users", "/api/v1/users/local:admin", "/api/v1/users/local:admin/keys", "/api/v1/session"]
    {
        let text = stage.get(path).await.body.to_string();
        let hash = rota_model::user::KeyHash::of(key);
        assert!(!text.contains(key) && !text.contains(hash.as_str()) && !text.contains("hashed"), "{text}");
    }
    let again =
        stage.post("/api/v1/users/local:admin/keys", json!({"name": "x", "expires": "2001-01-01T00:00:00Z"}));
    assert_eq!(again.await.status, 422);
}

#[tokio::test]
async fn users_and_domains_are_made_once_and_changed_on_the_version_read() {
    let stage = stage().await;
    assert_eq!(stage.post("/api/v1/domains", json!({"name": "green"})).await.status, 201);
    assert_eq!(stage.post("/api/v1/domains", json!({"name": "green"})).await.status, 409);
    assert_eq!(stage.post("/api/v1/domains", json!({"name": "No Good"})).await.status, 422);
    let user = json!({"id": "local:uma", "domains": {"green": "admin"}, "email": "uma@example.org"});
    assert_eq!(stage.post("/api/v1/users", user.clone()).await.status, 201);
    assert_eq!(stage.post("/api/v1/users", user).await.status, 409);
    let ghost = json!({"id": "local:ugo", "domains": {"ghost": "admin"}});
    assert_eq!(stage.post("/api/v1/users", ghost).await.status, 422);
    let misspelt = json!({"id": "local:ugo", "installation_admim": true});
    assert_eq!(stage.post("/api/v1/users", misspelt).await.status, 422);

    let path = "/api/v1/users/local:uma";
    let etag = stage.get(path).await.headers[header::ETAG].clone();
    let put = |etag: &header::HeaderValue| {
        let request = Request::put(path)
            .header(header::AUTHORIZATION, format!("Bearer {KEY}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::IF_MATCH, etag);
        stage.send(request.body(Body::from(r#"{"domains": {"green": "viewer"}}"#)).unwrap())
    };
    assert_eq!(put(&etag).await.status, 200);
    assert_eq!(put(&etag).await.status, 412);
    assert_eq!(stage.call("DELETE", "/api/v1/users/local:admin", Some(KEY), None).await.status, 409);
    assert_eq!(stage.call("PUT", "/api/v1/users/local:admin", Some(KEY), Some(json!({}))).await.status, 409);
    assert_eq!(stage.call("DELETE", path, Some(KEY), None).await.status, 204);
    assert_eq!(stage.get(path).await.status, 404);
}

#[tokio::test]
async fn the_page_is_served_with_a_strict_policy() {
    let stage = stage().await;
    let page = stage.call("GET", "/", None, None).await;
    assert_eq!(page.status, 200);
    assert!(page.body.as_str().unwrap().contains("<title>"));
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for line in page
        .body
        .as_str()
        .unwrap()
        .lines()
        .filter(|line| line.contains("src=\"") || line.contains("href=\"/"))
    {
        let path = line.split('"').find(|part| part.starts_with('/')).unwrap();
        assert_eq!(stage.call("GET", path, None, None).await.status, 200, "{path}");
    }
}

impl Stage {
    async fn call_json(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, None, Some(body)).await
    }
}

#[tokio::test]
async fn a_domain_says_how_long_its_jobs_and_lines_are_kept() {
    let stage = stage().await;
    let path = "/api/v1/domains/red";
    let set = |body: Value| stage.call("PUT", path, Some(KEY), Some(body));
    let kept = set(json!({"weight": 2, "keep_jobs": "30d", "keep_logs": "48h"})).await;
    assert_eq!((kept.status.as_u16(), &kept.body["keep_jobs"]), (200, &json!("30d")), "{}", kept.body);
    assert_eq!(stage.get(path).await.body["keep_logs"], "2d");
    for wrong in ["30", "0d", "30m", "", "always", "40000d"] {
        let refused = set(json!({"keep_jobs": wrong})).await;
        assert!([400, 422].contains(&refused.status.as_u16()), "{wrong}: {}", refused.body);
        assert!(refused.body.to_string().contains("forever"), "says what to write: {}", refused.body);
    }
    let back = set(json!({})).await.body;
    assert_eq!(
        (back.get("keep_jobs"), back.get("weight")),
        (None, None),
        "what is left out is as by default"
    );
    let anna = stage.user("anna", "red", Role::Admin).await;
    let own = stage.call("PUT", path, Some(&anna), Some(json!({"keep_jobs": "7d"}))).await;
    assert_eq!(
        (own.status.as_u16(), &own.body["keep_jobs"]),
        (200, &json!("7d")),
        "its administrator decides"
    );
    let more = stage.call("PUT", path, Some(&anna), Some(json!({"weight": 9}))).await;
    assert_eq!(more.status, 403, "and not about its share: {}", more.body);
    let made = stage.post("/api/v1/domains", json!({"name": "green", "keep_jobs": "forever"})).await;
    assert_eq!((made.status.as_u16(), &made.body["keep_jobs"]), (201, &json!("forever")));
}

/// Who has a document already is told that it has not changed, and gets it once it has.
#[tokio::test]
async fn a_document_that_one_has_is_not_sent_again() {
    let stage = stage().await;
    stage.user("anna", "red", Role::Admin).await;
    let later = json!({"jobName": "later", "input": {"type": "noop"}, "runAt": 4_102_444_799_000_i64});
    let job = stage.post("/api/v1/domains/red/jobs", later).await.body;
    let job = format!("/api/v1/domains/red/jobs/{}", job["jobId"].as_str().unwrap());
    for (path, method, change, body) in [
        ("/api/v1/domains/red", "PUT", "/api/v1/domains/red".to_owned(), Some(json!({"weight": 2}))),
        (
            "/api/v1/users/local:anna",
            "PUT",
            "/api/v1/users/local:anna".to_owned(),
            Some(json!({"email": "a@b"})),
        ),
        (&job, "POST", format!("{job}/cancel"), None),
    ] {
        let first = stage.get(path).await;
        let version = first.headers[header::ETAG].to_str().unwrap().to_owned();
        for known in [version.clone(), format!("W/{version}"), format!("\"0\", {version}"), "*".to_owned()] {
            let same = stage.get_unless(path, &known).await;
            assert_eq!((same.status.as_u16(), &same.body), (304, &json!("")), "{path} {known}");
            assert_eq!(same.headers[header::ETAG], version, "{path}");
        }
        for known in ["\"0\"", "nonsense"] {
            let other = stage.get_unless(path, known).await;
            assert_eq!((other.status.as_u16(), &other.body), (200, &first.body), "{path} {known}");
        }
        let changed = stage.call(method, &change, Some(KEY), body).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        let after = stage.get_unless(path, &version).await;
        assert_eq!((after.status.as_u16(), after.headers[header::ETAG] == version), (200, false), "{path}");
    }
    let nobody = stage.get_unless("/api/v1/domains/nowhere", "*").await;
    assert_eq!(nobody.status, 404);
}

/// The share of a domain is not its administrators' to set, so they need not know it to set the rest.
#[tokio::test]
async fn an_administrator_of_a_domain_leaves_its_weight_alone() {
    let stage = stage().await;
    let (path, anna) = ("/api/v1/domains/red", stage.user("anna", "red", Role::Admin).await);
    stage.call("PUT", path, Some(KEY), Some(json!({"weight": 3, "keep_logs": "7d"}))).await;
    let own = |body: Value| stage.call("PUT", path, Some(&anna), Some(body));
    let set = own(json!({"keep_jobs": "30d"})).await;
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!((&set.body["weight"], &set.body["keep_jobs"]), (&json!(3), &json!("30d")), "{}", set.body);
    assert_eq!(set.body.get("keep_logs"), None, "what is theirs to set is replaced as a whole");
    assert_eq!(own(json!({"weight": 3})).await.status, 200, "what it is may be repeated");
    let refused = own(json!({"weight": 4})).await;
    assert_eq!(refused.status, 403);
    assert!(refused.body["detail"].as_str().unwrap().contains("leave it out"), "{}", refused.body);
    assert_eq!(stage.get(path).await.body["weight"], 3);
    stage.call("PUT", path, Some(KEY), Some(json!({}))).await;
    assert_eq!(own(json!({"weight": 1})).await.status, 200, "1 is what it is where nobody said");
}
