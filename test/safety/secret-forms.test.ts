import { describe, expect, test } from '@jest/globals'
import { redact } from '../../safety/redact.ts'
import { listedRules, unusedRules } from '../../safety/redact-listed.ts'

/**
 * Made up here by the form that each maker documents, so that no scanner of this repository takes one for a leak: `a20` is 20 letters and
 * digits, `h32` hexadecimal, `u16` upper case and digits, `l10` lower case and digits, `d11` digits, `b40` base64.
 */
const alphabets: Record<string, string> = {
  a: 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789',
  h: '0123456789abcdef',
  u: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  l: 'abcdefghijklmnopqrstuvwxyz0123456789',
  d: '123456789',
  b: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
}
let seed = 7
function letters(kind: string, length: number): string {
  const alphabet = alphabets[kind] as string
  let text = ''
  for (let at = 0; at < length; at += 1) {
    seed = (seed + 0x6d2b79f5) | 0
    const mixed = Math.imul(seed ^ (seed >>> 15), seed | 1)
    text += alphabet[((mixed ^ (mixed >>> 14)) >>> 0) % alphabet.length]
  }
  return /\d/.test(text) ? text : `${text.slice(0, -1)}7`
}
const filled = (form: string): { text: string; secrets: string[] } => {
  const secrets: string[] = []
  const text = form.replace(/\{([ahuldb])(\d+)\}/g, (_match, kind: string, length: string) => {
    const made = letters(kind, Number(length))
    if (made.length >= 8) secrets.push(made)
    return made
  })
  return { text, secrets }
}

const tokens: Record<string, string> = {
  'GitHub personal': 'ghp_{a36}',
  'GitHub OAuth': 'gho_{a36}',
  'GitHub app': 'ghs_{a36}',
  'GitHub refresh': 'ghr_{a36}',
  'GitHub fine-grained': 'github_pat_{a22}_{a59}',
  'GitLab personal': 'glpat-{a20}',
  'GitLab runner': 'glrt-{a20}',
  'GitLab deploy': 'gldt-{a20}',
  'GitLab trigger': 'glptt-{h40}',
  'GitLab feed': 'glft-{a20}',
  'GitLab OAuth': 'gloas-{h64}',
  'GitLab SCIM': 'glsoat-{a20}',
  'GitLab agent': 'glagent-{a50}',
  'GitLab registration': 'GR1348941{a20}',
  'Atlassian API': 'ATATT3{a186}={u8}',
  'Bitbucket app': 'ATBB{a32}',
  Buildkite: 'bkua_{h40}',
  CircleCI: 'CCIPAT_{a22}_{h40}',
  Sourcegraph: 'sgp_{h40}',
  SonarQube: 'squ_{h40}',
  npm: 'npm_{a36}',
  Asana: '1/1{d15}:{h32}',
  'Doppler with its environment': 'dp.st.prd.{a40}',
  Infracost: 'ico-{a32}',
  Contentful: 'CFPAT-{a43}',
  Clojars: 'CLOJARS_{l60}',
  Shippo: 'shippo_live_{h40}',
  Duffel: 'duffel_live_{a43}',
  Resend: 're_{a8}_{a24}',
  LangSmith: 'lsv2_pt_{h32}_{h10}',
  Tavily: 'tvly-{a32}',
  Pinecone: 'pcsk_{a6}_{a63}',
  ngrok: 'ngrok_api_{a40}',
  Alibaba: 'LTAI{a20}',
  PyPI: 'pypi-AgEIcHlwaS5vcmc{a70}',
  RubyGems: 'rubygems_{h48}',
  NuGet: 'oy2{l43}',
  'Docker Hub': 'dckr_pat_{a27}',
  Artifactory: 'AKCp{a69}',
  'AWS access key': 'AKIA{u16}',
  'AWS session key': 'ASIA{u16}',
  'AWS role': 'AROA{u16}',
  'Google API': 'AIza{a35}',
  'Google OAuth': 'ya29.{a80}',
  'Google client': 'GOCSPX-{a28}',
  DigitalOcean: 'dop_v1_{h64}',
  Cloudflare: 'cfut_{a40}{h8}',
  Tailscale: 'tskey-auth-{a16}-{a32}',
  'Tailscale API': 'tskey-api-{a16}-{a32}',
  'Vault service': 'hvs.{a95}',
  'Vault batch': 'hvb.{a140}',
  'Vault legacy': 's.{a24}',
  Pulumi: 'pul-{h40}',
  Prefect: 'pnu_{a36}',
  Doppler: 'dp.pt.{a43}',
  'Terraform Cloud': '{a14}.atlasv1.{a67}',
  Vercel: 'vcp_{a56}',
  'Vercel blob': 'vercel_blob_rw_{a16}_{a32}',
  Netlify: 'nfp_{a36}',
  Supabase: 'sbp_{h40}',
  Heroku: 'HRKU-{a60}',
  Render: 'rnd_{a28}',
  'Fly.io': 'fm2_{a120}',
  PlanetScale: 'pscale_tkn_{a43}',
  Databricks: 'dapi{h32}',
  OpenShift: 'sha256~{a43}',
  Rancher: 'K10{h64}::server:{h32}',
  '1Password': 'ops_eyJ{a250}',
  '1Password key': 'A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}',
  'Grafana service': 'glsa_{a32}_{h8}',
  'Grafana cloud': 'glc_eyJ{a80}',
  'Grafana legacy': 'eyJrIjoi{a70}',
  'New Relic user': 'NRAK-{u27}',
  'New Relic browser': 'NRJS-{h19}',
  'New Relic ingest': 'NRII-{a32}',
  'Sentry organisation': 'sntrys_eyJ{b150}',
  'Sentry user': 'sntryu_{h64}',
  Dynatrace: 'dt0c01.{u24}.{u64}',
  Postman: 'PMAK-{h24}-{h34}',
  PostHog: 'phx_{a43}',
  OpenAI: 'sk-{a48}',
  'OpenAI project': 'sk-proj-{a74}T3BlbkFJ{a74}',
  Anthropic: 'sk-ant-api03-{a93}AA',
  'Hugging Face': 'hf_{a34}',
  Groq: 'gsk_{a52}',
  Replicate: 'r8_{a37}',
  Perplexity: 'pplx-{a48}',
  xAI: 'xai-{a80}',
  NVIDIA: 'nvapi-{a64}',
  'Slack bot': 'xoxb-{d11}-{d12}-{a24}',
  'Slack user': 'xoxp-{d11}-{d11}-{d12}-{h32}',
  'Slack app': 'xapp-1-A{u10}-{d13}-{h64}',
  'Slack refresh': 'xoxe-1-{a146}',
  'Stripe live': 'sk_live_{a24}',
  'Stripe restricted': 'rk_live_{a24}',
  'Stripe webhook': 'whsec_{a32}',
  SendGrid: 'SG.{a22}.{a43}',
  Twilio: 'SK{h32}',
  Mailgun: 'key-{h32}',
  Brevo: 'xkeysib-{h64}-{a16}',
  Mailchimp: '{h32}-us12',
  Square: 'sq0atp-{a22}',
  'Square production': 'EAAAE{a59}',
  Shopify: 'shpat_{h32}',
  'Shopify shared': 'shpss_{h32}',
  ReadMe: 'rdme_{l70}',
  EasyPost: 'EZAK{a54}',
  Flutterwave: 'FLWSECK-{h32}-X',
  'Discord bot': 'MTA{a23}.{a6}.{a38}',
  Telegram: '{d10}:AA{a33}',
  Linear: 'lin_api_{a40}',
  'Linear OAuth': 'lin_oauth_{h64}',
  Notion: 'ntn_{d11}{a35}',
  'Notion legacy': 'secret_{a43}',
  Figma: 'figd_{a40}',
  Dropbox: 'sl.{a135}',
  Airtable: 'pat{a14}.{h64}',
  LaunchDarkly: 'sdk-{h8}-{h4}-4{h3}-{h4}-{h12}',
  age: 'AGE-SECRET-KEY-1{u58}',
  'a JSON web token': 'eyJhbGciOiJIUzI1NiJ9.eyJ{a40}.{a43}',
}

const places: Record<string, (token: string) => string> = {
  'a line of a log': (token) => `2026-11-22T03:14:15Z ERROR worker[17]: request with ${token} was refused`,
  'a text in JSON': (token) => JSON.stringify({ msg: `called with ${token}`, level: 'error' }),
  'an argument': (token) => `deploy --with ${token} --region eu`,
}

const files: Record<string, string> = {
  '.pgpass': 'db-osl-1:5432:app:app_rw:{a16}',
  '.pgpass for all': '*:*:*:postgres:{a14}\n',
  '.netrc': 'machine git.example.org login deploy password {a20}',
  '.netrc in lines': 'machine git.example.org\n  login deploy\n  password {a20}\n',
  'docker config': '{"auths":{"registry.example.org":{"auth":"{b44}"}}}',
  'docker config in lines': '{\n  "auths": {\n    "registry.example.org": {\n      "auth": "{b44}"\n    }\n  }\n}',
  kubeconfig:
    'users:\n- name: admin\n  user:\n    client-certificate-data: LS0tLS1CRUdJTg\n    client-key-data: {b400}\n',
  'kubeconfig token': 'users:\n- name: admin\n  user:\n    token: {a60}\n',
  'a Secret':
    'apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  anything: {b44}\n  other.key: {b24}\n',
  'a Secret, kind last': 'apiVersion: v1\ndata:\n  anything: {b44}\nkind: Secret\nmetadata:\n  name: app\n',
  'a Secret in JSON': '{"kind":"Secret","metadata":{"name":"app"},"data":{"anything":"{b44}"}}',
  'a Secret of texts': 'kind: Secret\nstringData:\n  config: "{a24}"\n',
  'MySQL grant': "CREATE USER 'app'@'%' IDENTIFIED BY '{a16}'",
  'MySQL plugin': "ALTER USER app IDENTIFIED WITH caching_sha2_password BY '{a16}';",
  'PostgreSQL role': "CREATE ROLE app LOGIN PASSWORD '{a16}'",
  'PostgreSQL alter': "ALTER USER app WITH ENCRYPTED PASSWORD '{a16}' VALID UNTIL 'infinity'",
  'MySQL set': "SET PASSWORD FOR 'app'@'%' = PASSWORD('{a16}')",
  'SNMP community': 'rocommunity {a12} 10.0.0.0/8',
  'SNMP write community': 'rwcommunity {a12}',
  'SNMP com2sec': 'com2sec readonly default {a12}',
  'SNMP user': 'createUser monitor SHA {a16} AES {a16}',
  'SNMP on a switch': 'snmp-server community {a12} RO',
  snmpwalk: 'snmpwalk -v2c -c {a12} switch-1 sysDescr',
  'Redis configuration': 'requirepass {a24}',
  'Redis replica': 'masterauth {a24}',
  'Redis ACL': 'user app on >{a20} ~app:* +@read',
  'Cisco enable': 'enable secret 5 {a24}',
  'Cisco user': 'username admin privilege 15 password 7 {u16}',
  BGP: 'neighbor 10.0.0.1 password {a16}',
  TACACS: 'tacacs-server host 10.0.0.1 key 7 {u16}',
  'WireGuard key': '[Interface]\nPrivateKey = {b43}=\n',
  'WireGuard preshared': '[Peer]\nPresharedKey = {b43}=\n',
  'IPsec secrets': '10.0.0.1 10.0.0.2 : PSK "{a24}"',
  'IPsec EAP': 'anna : EAP "{a16}"',
  wpa_supplicant: 'network={\n  ssid="office"\n  psk="{a16}"\n}',
  OpenVPN: '-----BEGIN OpenVPN Static key V1-----\n{h32}\n{h32}\n{h32}\n-----END OpenVPN Static key V1-----',
  PuTTY: 'PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n{b64}\n{b24}\nPrivate-MAC: {h6}',
  PPP: '"provider" * "{a12}"',
  'postfix sasl_passwd': '[smtp.example.org]:587 relay@example.org:{a16}',
  'Samba hashes': 'anna:1001:{h32}:{h32}:[U          ]:LCT-0:',
  keepalived: 'auth_pass {a16}',
  'HAProxy user': 'user admin insecure-password {a16}',
  'HAProxy statistics': 'stats auth admin:{a16}',
  'rndc key': 'key "rndc-key" { algorithm hmac-sha256; secret "{b43}="; };',
  'Dovecot users': 'anna:{PLAIN}{a16}:1000:1000',
  Dockerfile: 'ENV API_TOKEN {a24}',
  'Ceph key': '[client.admin]\n\tkey = AQ{b36}==\n',
  'WordPress password': "define('DB_PASSWORD', '{a18}');",
  'WordPress key': 'define( "AUTH_KEY", "{a40}" );',
  'XML attribute': '<property name="password" value="{a18}"/>',
  'openssl argument': 'openssl rsa -passin pass:{a18} -in host.key',
  'keytool argument': 'keytool -list -storepass {a18}',
  'ipmitool argument': 'ipmitool -H bmc-1 -U admin -P {a18} power status',
  'zip argument': 'zip -P {a18} out.zip file',
  '7z argument': '7z x in.7z -p{a18}',
  'sqlplus argument': 'sqlplus scott/{a18}@db',
  'smbclient argument': 'smbclient //files/x -U anna%{a18}',
  'password for sudo': "echo '{a18}' | sudo -S systemctl status",
  chpasswd: "echo 'root:{a18}' | chpasswd",
  'Vault unseal key': 'Unseal Key 1: {b44}',
  'OAuth code': 'code={a24}&state=x&grant_type=authorization_code',
  'root password': 'ROOT_PW={a16}',
  'Rails key': 'SECRET_KEY_BASE={a16}',
  'Laravel key': 'APP_KEY={a16}',
  SSHPASS: 'SSHPASS={a16}',
  LDAP: 'userPassword: {SSHA}{b40}',
  'shadow file': ['anna:$6$rounds=5000$', '{a16}$', '{a86}:19000:0:99999:7:::'].join(''),
  htpasswd: ['anna:$apr1$', '{a8}$', '{a22}'].join(''),
  'Azure storage': 'DefaultEndpointsProtocol=https;AccountName=x;AccountKey={b86}==;EndpointSuffix=core.windows.net',
  'Azure bus': 'Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={b43}=',
  'SQL Server': 'Server=db;Database=app;User Id=app;Password={a16};',
  'a URL': 'postgres://app:{a16}@db:5432/app',
  'AWS credentials': '[default]\naws_access_key_id = AKIA{u16}\naws_secret_access_key = {b40}\n',
  '.npmrc': '//registry.example.org/:_authToken={a36}',
  'Ansible variables': 'ansible_become_pass: {a16}',
  'my.cnf': '[client]\nuser=app\npassword={a16}\n',
  'Spring properties': 'spring.datasource.password={a16}',
  'Slack webhook': 'https://hooks.slack.com/services/T{u8}/B{u8}/{a24}',
  'a header': 'Authorization: Basic {b40}',
  'an X-header': 'X-Api-Key: {a32}',
  'a cookie': 'Set-Cookie: session={a40}; HttpOnly',
  'an environment': 'DB_PASSWORD={a16} REDIS_URL=redis://:{a16}@r:6379 ./run',
  'a private key': '-----BEGIN OPENSSH PRIVATE KEY-----\n{b70}\n{b70}\n-----END OPENSSH PRIVATE KEY-----',
}

const harmless = [
  'password: (empty)',
  'HAProxy stats auth failed for admin',
  'zip -r out.zip /var/log/nginx',
  'sudo -S reads the password from its input',
  'user admin insecure-password is not set',
  'live_restore=true live_connections=35',
  'cache app_key_count 12',
  'host-osl-1:5432:app:app_rw:5432',
  'Established 10.0.0.1:5432:up:since:2026',
  '03:14:15 node-1 kernel: usb 1-1: new device',
  '2026-11-22 03:14:15 INFO a:b:c:d:e',
  'key-value store is up',
  'SK hynix 512GB',
  'the user app has 3 sessions > 2',
  'user nginx; worker_processes 4;',
  'community edition 9.5',
  'snmpd[312]: started',
  'wifi: psk authentication failed',
  'login as root failed',
  'machine-id 1f0c4e7e9c4d4a0e8d2b5a6c7d8e9f00',
  'password for user app: ',
  'Enter password for machine db-1',
  'enable password is not set',
  'neighbor 10.0.0.1 password is set',
  '[IN] ST Critical',
  'Secret "app" of kind: Secret was created',
  'kind: ConfigMap\ndata:\n  log_level: debug\n  replicas: "3"\n',
  'commit 3f8e2c1d9b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e',
  'image: registry.example.org/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7',
  'pod/web-7d9f8b6c5d-x2x4z 1/1 Running 0 5d',
  'sk-learn pipeline done',
  'hf_hub download is slow today',
  'glc_ is a prefix of Grafana',
  'u+rwx,g+rx',
  'fm2_ and r8_ are prefixes',
  'rnd_seed is 42',
  'pat is absent',
  'K10 is a mountain',
  's.example.org answered',
  'r.example.org. 300 IN A 10.0.0.1',
  'oy2 is short',
  'secret_santa_list',
  'A3-paper-tray is empty',
  'vcp_ and vca_ mean nothing here',
  'dose response curve',
  '{"auth":"none"}',
  'auth: ok',
  'UNIT-us12 is up',
  'mysql-proxy 6446/tcp # MySQL Proxy',
  '"@inquirer/password": "^5.3.0",',
  'mysql-persistent-volume is bound',
]

describe('secrets in the forms that their makers gave them', () => {
  for (const [where, put] of Object.entries(places)) {
    test.each(Object.entries(tokens))(`%s goes from ${where}`, (_name, form) => {
      const { text, secrets } = filled(form)
      const clean = redact(put(text))
      for (const secret of secrets) expect(clean).not.toContain(secret)
      expect(redact(clean)).toBe(clean)
    })
  }

  test.each(Object.entries(files))('%s', (_name, form) => {
    const { text, secrets } = filled(form)
    const clean = redact(text)
    for (const secret of secrets) expect(clean).not.toContain(secret)
    expect(redact(clean)).toBe(clean)
  })

  test.each(harmless)('%j stays as it is', (text) => {
    expect(redact(text)).toBe(text)
  })
})

test('every rule of the public list is used, or left out for a reason that is written down', () => {
  expect(listedRules.filter((id) => unusedRules.has(id))).toHaveLength(unusedRules.size)
  expect(listedRules.length - unusedRules.size).toBeGreaterThanOrEqual(23)
})
