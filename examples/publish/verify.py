"""Verifies what an agent's answer announces, by docs/attribution-v1.md alone: python3 verify.py URL. Needs cryptography."""
import base64, hashlib, json, re, sys, time, unicodedata, urllib.error, urllib.parse, urllib.request
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def get(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept-Encoding": "identity"}), timeout=30) as r:
        return r.status, r.headers, r.read()

def normal(s):  # section 4, step 3
    s = "".join(c for c in unicodedata.normalize("NFC", s) if unicodedata.category(c) != "Cf" and c != "\ufffd")
    return " ".join(s.split())

def sha(b): return "sha256:" + hashlib.sha256(b).hexdigest()

def strings(v, at=""):
    if isinstance(v, str): yield at, v
    for k, x in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ():
        yield from strings(x, at + "/" + str(k).replace("~", "~0").replace("/", "~1"))

def signed(url, status, headers, body):  # sections 8 and 9
    params = re.fullmatch(r'manifest=(.*)', headers["Signature-Input"]).group(1)
    names, keyid = re.findall(r'"([^"]+)"', params.split(")")[0]), re.search(r'keyid="([^"]+)"', params).group(1)
    assert 'tag="agent-citation-manifest"' in params and {"@status", "content-type", "content-digest", "@target-uri"} <= set(names)
    assert headers["Content-Digest"] == "sha-256=:%s:" % base64.b64encode(hashlib.sha256(body).digest()).decode(), "digest"
    value = {"@status": status, "@target-uri": url, **{n: headers[n] for n in names if n[0] != "@"}}
    base = "\n".join(f'"{n}"{";req" if n == "@target-uri" else ""}: {value[n]}' for n in names) + f'\n"@signature-params": {params}'
    keys = json.loads(get(urllib.parse.urljoin(url, "/.well-known/http-message-signatures-directory"))[2])["keys"]
    key = next(k for k in keys if k["kid"] == keyid)
    thumb = json.dumps({n: key[n] for n in ("crv", "kty", "x")}, separators=(",", ":")).encode()
    assert base64.urlsafe_b64encode(hashlib.sha256(thumb).digest()).rstrip(b"=").decode() == keyid, "thumbprint"
    signature = base64.b64decode(re.fullmatch("manifest=:(.*):", headers["Signature"]).group(1))
    Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "==")).verify(signature, base.encode())
    return keyid

def verify(url):
    _, answer, body = get(url)
    address = re.search(r';\s*manifest="([^"]+)"', answer["Citation-Source"]).group(1)
    status, headers, octets = get(address)
    while status == 202:  # not built yet
        time.sleep(int(headers["Retry-After"])); status, headers, octets = get(address)
    print("signed by", signed(address, status, headers, octets))
    manifest = json.loads(octets)
    assert manifest["agent_id"].split("/")[0] == urllib.parse.urlsplit(address).netloc == urllib.parse.urlsplit(url).netloc
    output = manifest["output"]  # section 6
    texts = [("the body", body.decode())] + (list(strings(json.loads(body))) if answer.get_content_type() == "application/json" else [])
    held = [at for at, t in texts if sha(normal(t).encode()) == output["text_hash"] and output.get("text_at", at) == at]
    assert sha(body) == output["hash"] or len(held) == 1, "the manifest is about another response"
    print("about this response:", *held or ["its octets"])
    sources = {s["id"]: s for s in manifest.get("sources", [])}
    for claim in manifest["claims"]:
        for c in claim["sources"]:
            exact, name = c.get("excerpt", {}).get("exact"), sources.get(c.get("source"), c).get("title") or c["url"]
            if c["url"].startswith("urn:"): print(f"{claim['text']!r}: {name} has no address")
            elif sha(page := get(c["url"])[2]) == c.get("hash"): print(f"{claim['text']!r}: {name} is unchanged")
            else: print(f"{claim['text']!r}: {name} has changed,", "and has the excerpt" if exact and normal(exact) in normal(page.decode()) else "look yourself")

if __name__ == "__main__": verify(sys.argv[1])
