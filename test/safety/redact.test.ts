import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { newId } from '../../domain/digest.ts'
import { cleanse, isSecretive, redact, redactJson } from '../../safety/redact.ts'
import { withoutHanging } from '../support/endless.ts'

// Put together here, so that no scanner of this repository takes an example for a leak.
const c = (...parts: string[]) => parts.join('')
const jwt = c('eyJ', 'hbGciOiJIUzI1NiJ9.eyJ', 'zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N')
const pem = c(
  '-----BEGIN RSA PRIV',
  'ATE KEY-----\n',
  'MIIEowIBAAKCAQEA',
  'x'.repeat(40),
  '\nabc=\n-----END RSA PRIV',
  'ATE KEY-----',
)
const canary = 'Canary7Zq9x'

/** Each holds the canary (or one of its own) and must lose it. */
const leaks: [text: string, secret: string][] = [
  // Cut off in the middle of a line, as a limit of output does.
  [
    `${c('-----BEGIN OPENSSH PRIV', 'ATE KEY-----')}\n${'b3BlbnNzaC1rZXktdjEA'.repeat(3)}\nQyNTUxOQAAACC`,
    'QyNTUxOQAAACC',
  ],
  ...[
    `password=${canary}`,
    `password = ${canary}`,
    `password: ${canary}`,
    `Password:${canary}`,
    `PASSWORD="${canary}"`,
    `password='${canary}'`,
    `passwd=${canary}`,
    `pwd=${canary}`,
    `passphrase: ${canary}`,
    `db_pass=${canary}`,
    `secret=${canary}`,
    `secret: ${canary}`,
    `token=${canary}`,
    `token: ${canary}`,
    `api_key=${canary}`,
    `api-key: ${canary}`,
    `apikey=${canary}`,
    `apiKey: "${canary}"`,
    `access_key=${canary}`,
    `private_key=${canary}`,
    `client_secret=${canary}`,
    `PGPASSWORD=${canary} psql -h db`,
    `MYSQL_PWD=${canary} mysql`,
    `export AWS_SECRET_ACCESS_KEY=${canary}`,
    `AWS_SESSION_TOKEN=${canary}`,
    `NIGHTSHIFT_TOKEN=${canary}`,
    `spring.datasource.password=${canary}`,
    `vault.token => '${canary}'`,
    `password := "${canary}"`,
    `password="with space ${canary} and more"`,
    `password="with \\" quote ${canary}"`,
    `password=a,${canary}`,
    `user=a, password=${canary}, host=c`,
    `(password=${canary})`,
    `AccountName=x;AccountKey=${canary}==;EndpointSuffix=core.windows.net`,
    `Server=db;User Id=sa;Password=${canary};`,
    `mysql --password=${canary} -e 'select 1'`,
    `app --password ${canary} --verbose`,
    `app --db-password "${canary}"`,
    `app --token ${canary}`,
    `app --api-key ${canary}`,
    `app --client-secret ${canary}`,
    `mysql -u root -p${canary} app`,
    `mysqldump -p${canary} app`,
    `mysqladmin -uroot -p${canary} status`,
    `sshpass -p ${canary} ssh host`,
    `docker login -u me -p ${canary} registry`,
    `redis-cli -h db -a ${canary} ping`,
    `ldapsearch -D cn=x -w ${canary} -b y`,
    `curl -u admin:${canary} https://x`,
    `curl --user admin:${canary} https://x`,
    `["mysql","-u","root","-p${canary}"]`,
    `["app", "--password", "${canary}"]`,
    `Authorization: Bearer ${canary}`,
    `authorization: Basic ${canary}=`,
    `Authorization: ${canary}`,
    `Proxy-Authorization: Basic ${canary}`,
    `Authorization: AWS4-HMAC-SHA256 Credential=${canary}`,
    `Cookie: session=${canary}; theme=dark`,
    `Set-Cookie: sid=${canary}; HttpOnly`,
    `X-Api-Key: ${canary}`,
    `X-Auth-Token: ${canary}`,
    `X-Vault-Token: ${canary}`,
    `PRIVATE-TOKEN: ${canary}`,
    `curl -H "Authorization: Bearer ${canary}" https://x`,
    `curl -H 'X-Api-Key: ${canary}' https://x`,
    `sent bearer ${canary}abcdef to it`,
    `postgres://app:${canary}@db:5432/app`,
    `redis://:${canary}@cache:6379`,
    `amqp://guest:${canary}@mq/vhost`,
    `https://user:p@ss${canary}@host/x`,
    `app:${canary}@tcp(db:3306)/app`,
    `https://x/y?token=${canary}`,
    `https://x/y?a=1&access_token=${canary}&b=2`,
    `https://x.blob.core.windows.net/y?sv=1&sig=${canary}%3D`,
    `https://x/y?X-Amz-Signature=${canary}`,
    `https://x/y?key=${canary}${canary}`,
    `https://x/y?api_key=${canary}#z`,
    `https://hooks.slack.com/services/T000/B000/${canary}`,
    `https://discord.com/api/webhooks/123/${canary}`,
    `<password>${canary}</password>`,
    `<ns:apiKey>${canary}</ns:apiKey>`,
    `{"password":"${canary}"}`,
    `{"a":{"client_secret":"${canary}"}}`,
    `{"authorization":"Bearer ${canary}"}`,
    `{"name":"DB_PASSWORD","value":"${canary}"}`,
    `- name: DB_PASSWORD\n  value: ${canary}`,
    `{"line":"password=${canary}"}`,
    `{"line":"\\npassword=${canary}\\n"}`,
    `{"line":"{\\"password\\":\\"${canary}\\"}"}`,
    `payload={"password":"${canary}"} done`,
    `payload="{\\"password\\":\\"${canary}\\"}"`,
    `{"passwords":"x","env":["PGPASSWORD=${canary}"]}`,
    `{"password":["${canary}"]}`,
    `{"token":"${canary}"`,
    `response="${'0123456789abcdef'.repeat(2)}" password=${canary}`,
    `line one\npassword: ${canary}\nline three`,
    `DB_PASSWORD: ${canary}`,
    `db:\n  password: "${canary}"\n`,
  ].map((text): [string, string] => [text, canary]),
  ...[
    jwt,
    c('AKIA', 'IOSFODNN7EXAMPLE'),
    c('ASIA', 'IOSFODNN7EXAMPLE'),
    c('AIza', 'SyD-1234567890abcdefghijklmnopqrstu'),
    c('ghp', '_abcdefghijklmnopqrstuvwxyz0123456789'),
    c('gho', '_abcdefghijklmnopqrstuvwxyz0123456789'),
    c('github', '_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz'),
    c('glpat', '-abcdefghij0123456789'),
    c('xoxb', '-123456789012-abcdefghij'),
    c('xapp', '-1-A0000000000-12345'),
    c('sk_', 'live_4eC39HqLyjWDarjtT1zdp7dc'),
    c('rk_', 'test_4eC39HqLyjWDarjtT1zdp7dc'),
    c('whsec', '_4eC39HqLyjWDarjtT1zdp7dc'),
    c('sk-', 'proj-abcdefghij0123456789abcdefghij'),
    c('sk-', 'ant-api03-abcdefghij0123456789'),
    c('sk-', 'abcdefghij0123456789abcdefghij'),
    c('npm', '_abcdefghijklmnopqrstuvwxyz0123456789'),
    c('hvs', '.CAESIabcdefghij0123456789'),
    c('dop', `_v1_${'0123456789abcdef'.repeat(4)}`),
    c('SG', '.abcdefghijklmnop1234.abcdefghijklmnopqrstuvwxyz0123'),
    c('123456789:AA', 'abcdefghijklmnopqrstuvwxyz0123456'),
    c('nst', '_Ab0-Ab1_Ab2-Ab3_Ab4-Ab5_Ab6-Ab7_Ab8-Ab9_Abc'),
    c('Zm9vYmFyLW5pZ2h0c2hpZnQ', 'tZGVjaXNpb24tdG9rZW4'),
    c('$2b$', '12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW'),
    c('$6$', 'rounds=5000$saltsalt$', 'a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6'),
    c('$y$', 'j9T$saltsalt$', 'a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6'),
    c('$argon2id', '$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$a1b2c3d4e5f6g7h8'),
    c('SCRAM-SHA-256$', '4096:c2FsdHNhbHQ=$a1b2c3d4e5f6g7h8='),
    c('*', '2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19'),
    c('md5', '0123456789abcdef0123456789abcdef'),
  ].flatMap((secret): [string, string][] => [
    [secret, secret],
    [`got ${secret} here`, secret],
    [`{"line":"first\\n${secret}\\nlast"}`, secret],
  ]),
]

const kept = [
  '',
  'the token bucket is full',
  'password expired',
  'password: ',
  'password=',
  'password:',
  'secret santa',
  'token=none',
  'token: null',
  'password: required',
  'password is not set',
  'password authentication failed for user "app"',
  'unexpected token: foo',
  'Unexpected token } in JSON at position 5',
  'syntax error: unexpected token < in line 5',
  'secret "db-credentials" not found',
  'secret: not found',
  'MountVolume.SetUp failed for volume: secret "db" not found',
  'invalid token',
  'token: expired',
  'Authorization: required',
  'the cookie: yes',
  'PWD=/root',
  'OLDPWD=/var/lib/x',
  'pwd: /home/app',
  'password_file=/run/secrets/db',
  '--password-file /run/secrets/db',
  '--password --verbose',
  'mysql -p app',
  'mysql -P 3306 app',
  'token_type=bearer',
  'max_tokens=4096',
  'tokens: 512',
  '{"prompt_tokens":12345678,"completion_tokens":90}',
  '{"token":512}',
  'token: 42',
  'password=$DB_PASSWORD',
  `password=$\{DB_PASSWORD}`,
  'password: {{ .Values.password }}',
  'password=<password>',
  'password=****',
  'password=xxxxx',
  'password=[redacted:password]',
  'Authorization: Bearer [redacted:header]',
  '{"secretName":"db","tokenExpiry":"2026-01-01","passwordless":true}',
  '{"password":null,"token":false,"secret":""}',
  '{"secret":{"name":"db"},"password":{"type":"string"}}',
  '{"nextPageToken":"CAESBggKEAEYAQ","continue":"abc"}',
  'public_key=ssh-ed25519',
  'primary key: id',
  'key=value',
  'monkey: 5',
  '01k5m3v7c0q9h2x8z4w6',
  'inc_01k5m3v7c0q9h2x8z4w6r1t5ya',
  '123e4567-e89b-12d3-a456-426614174000',
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'da39a3ee5e6b4b0d3255bfef95601890afd80709',
  'd41d8cd98f00b204e9800998ecf8427e',
  'SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLTvzYEC1abcdefghi',
  '10.0.0.1:5432',
  'fe80::1%eth0',
  'http://[::1]:8080/x@y',
  'http://host:8080/path?x=a@b',
  'https://example.com/x?page=2&sort=key',
  'ssh://git@github.com/a/b.git',
  'user@example.com',
  'http_requests_total{job="api",code="500",instance="10.0.0.1:9100"} 5',
  'rate(node_disk_io_time_seconds_total{device="sda"}[5m])',
  '$1 and $2 and $HOME',
  "awk '{print $1}'",
  'cost is $5',
  '* 5 * * * root',
  'task-0123456789abcdefghij0123',
  'disk-0123456789abcdefghij0123',
  'risk_live_x',
  'inst_abcdefghijklmnopqrstuvwxyz',
  'postgres-primary-7d9f8b6c5d-x2x4z.production.svc.cluster.local',
  'a-very-long-lower-case-name-of-a-pod-in-a-cluster-0',
  'ThisIsAVeryLongCamelCaseClassNameWithoutAnyDigits',
  'basic authentication is disabled',
  'bearer of bad news',
  'Bearer authentication-is-required-here',
  '2026-11-21T02:10:00.123456Z',
  'if token == expected then',
  'password != confirmation',
  'std::secret::value',
  '-----BEGIN CERTIFICATE-----',
  'found -----BEGIN PRIVATE KEY----- in a file',
  'SELECT password FROM users',
]

describe('redact', () => {
  test.each(leaks)('removes the secret of %j', (text, secret) => {
    const clean = redact(text)
    expect(clean).not.toContain(secret)
    expect(clean).toContain('[redacted:')
    expect(redact(clean)).toBe(clean)
    expect(isSecretive(text)).toBe(true)
  })

  test.each(kept)('leaves %j as it is', (text) => {
    expect(redact(text)).toBe(text)
    expect(isSecretive({ text })).toBe(false)
  })

  test.each([
    ['password=x1, user=b', 'password=[redacted:password], user=b'],
    ['postgres://app:x1@db/app', 'postgres://app:[redacted:url]@db/app'],
    ['curl -H "Authorization: Bearer x1y2" u', 'curl -H "Authorization: Bearer [redacted:header]" u'],
    ['{"token":"x1","n":1}', '{"token":"[redacted:token]","n":1}'],
    ['{\n  "token": "x1",\n  "n": 1\n}', '{\n  "token": "[redacted:token]",\n  "n": 1\n}'],
    ['{"password":1234,"big":12345678901234567890}', '{"password":"[redacted:password]","big":12345678901234567890}'],
  ])('leaves the text around a secret: %j', (text, clean) => {
    expect(redact(text)).toBe(clean)
  })

  describe('private keys', () => {
    test.each([
      ['whole', pem],
      ['without its end', pem.split('\nabc')[0]!],
      ['with escaped line breaks', JSON.stringify({ key: pem }).slice(1, -1)],
      ['in a service account', JSON.stringify({ type: 'service_account', private_key: pem })],
      ['encrypted', pem.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n')],
      ['indented', pem.replaceAll('\n', '\n    ')],
      ['of OpenSSH', pem.replaceAll('RSA', 'OPENSSH')],
    ])('%s', (_, text) => {
      expect(redact(text)).not.toContain('MIIEow')
      expect(redact(redact(text))).toBe(redact(text))
    })
  })

  test('JSON stays JSON of the same shape, whatever it contains', () => {
    const key = fc.constantFrom('a', 'password', 'token', 'api_key', 'note', '__proto__', 'name', 'value')
    const leaf = fc.oneof(
      fc.constantFrom(...leaks.map(([text]) => text), ...kept),
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree')),
      ),
    }))
    const shape = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shape)
      if (value === null || typeof value !== 'object') return 'leaf'
      return Object.entries(value).map(([name, entry]) => [name, shape(entry)])
    }
    fc.assert(
      fc.property(tree, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(shape(JSON.parse(redact(text)))).toEqual(shape(JSON.parse(text)))
        expect(JSON.stringify(redactJson(redactJson(value)))).toBe(JSON.stringify(redactJson(value)))
      }),
      { numRuns: 1000 },
    )
  })

  test('is idempotent on texts of secrets and quotes', () => {
    const piece = fc.oneof(
      fc.constantFrom(...leaks.map(([text]) => text), ...kept),
      fc.constantFrom(
        '"',
        "'",
        '\\',
        '\n',
        ' ',
        ':',
        '=',
        ',',
        '{',
        '}',
        '[redacted:token]',
        'password',
        'token',
        '--',
        '://',
        '@',
      ),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const clean = redact(pieces.join(''))
        expect(redact(clean)).toBe(clean)
      }),
      { numRuns: 3000 },
    )
  })

  test.each([
    'a',
    '-',
    'A ',
    'aA1_',
    'password',
    'password=',
    'password="',
    "password='",
    'password=\\"',
    'token: ',
    'eyJ',
    'eyJa.',
    '-----BEGIN PRIVATE KEY-----',
    '://a:b',
    'mysql -p',
    'mysql ',
    'curl -u ',
    'name: password, value: ',
    '\\',
    '\\"',
    '"',
    '$2b$10$',
    'bearer a',
    'authorization: ',
    'cookie: a=',
    '?sig=',
    'sk-a',
    '<password>',
    '--password ',
    '{"a":',
    '[',
    'docker login ',
    'hooks.slack.com/services/',
    `${'A'.repeat(42)} `,
    `${'a-'.repeat(30)} `,
    `${'x'.repeat(60)}.`,
  ])('1 MB of %j is read to its end', (seed) => {
    const text = seed.repeat(Math.ceil(1_000_000 / seed.length))
    expect(withoutHanging(() => redact(text))).not.toBe('')
  })
})

describe('redactJson', () => {
  test('reads names, pairs, argument lists and keys', () => {
    const clean = redactJson({
      Password: 'x',
      'API key': 'y',
      env: [
        { name: 'DB_PASSWORD', value: 'z' },
        { name: 'PORT', value: '1' },
      ],
      argv: ['app', '--token', 'q', '--verbose'],
      [jwt]: 1,
      pin: { password: 1234 },
    })
    expect(clean).toEqual({
      Password: '[redacted:password]',
      'API key': '[redacted:key]',
      env: [
        { name: 'DB_PASSWORD', value: '[redacted:password]' },
        { name: 'PORT', value: '1' },
      ],
      argv: ['app', '--token', '[redacted:password]', '--verbose'],
      '[redacted:jwt]': 1,
      pin: { password: '[redacted:password]' },
    })
  })

  test('returns the same object if there is nothing to remove', () => {
    const value = { a: [1, 'two', { three: null }] }
    expect(redactJson(value)).toBe(value)
  })

  test('`__proto__` is a key like any other', () => {
    const clean = redactJson(JSON.parse('{"__proto__":{"token":"x1"},"b":1}'))
    expect(JSON.stringify(clean)).toBe('{"__proto__":{"token":"[redacted:token]"},"b":1}')
  })

  test('ends for deeply nested data', () => {
    let value: unknown = 'x'
    for (let i = 0; i < 5000; i++) value = [value]
    expect(JSON.stringify(redactJson(value))).toContain('[nested too deep]')
  })
})

describe('cleanse', () => {
  test('strips before it redacts, so that no invisible character hides a secret', () => {
    const hidden = `pass\u200bword=\u001b[31m${canary}\u001b[0m`
    expect(cleanse(hidden)).toBe('password=[redacted:password]')
    expect(cleanse({ 'tok\u2060en': canary, 'a\u0000': 'b\ud800', gone: undefined })).toEqual({
      token: '[redacted:token]',
      'a\ufffd': 'b\ufffd',
    })
  })

  test('is idempotent on every JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const clean = cleanse(value)
        expect(cleanse(clean)).toEqual(clean)
      }),
      { numRuns: 2000 },
    )
  })
})

test.each(['alr', 'apr', 'chg', 'exp', 'grp', 'grt', 'inc', 'msg', 'opr', 'prp', 'psh', 'tok'])(
  'ids of rows stay, whatever their random part is: %s_',
  (prefix) => {
    for (let made = 0; made < 200; made += 1) {
      const id = newId(prefix)
      for (const text of [id, `"${id}"`, `Revoked ${id}: a reason`, `approval=${id}, token ${id}`])
        expect(redact(text)).toBe(text)
    }
  },
)
