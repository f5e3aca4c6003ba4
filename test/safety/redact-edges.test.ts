import { describe, expect, test } from '@jest/globals'
import { isSecretive, redact, redactJson } from '../../safety/redact.ts'
import { isNoSecret, kindOfName } from '../../safety/redact-names.ts'

describe('a secret under its name', () => {
  test.each([
    ['password=hunter22', 'password=[redacted:password]'],
    ['password="hunter 22" x', 'password="[redacted:password]" x'],
    ["password='hunter 22' x", "password='[redacted:password]' x"],
    ['{\\"password\\":\\"hunter22\\",', '{\\"password\\":\\"[redacted:password]\\",'],
    ['(password=hunter22)', '(password=[redacted:password])'],
    ['[password=hunter22].', '[password=[redacted:password]].'],
    ['x password=hunter22, y', 'x password=[redacted:password], y'],
    ['password=)]},.', 'password=)]},.'],
    ['password=true.', 'password=true.'],
    ['password="true"', 'password="true"'],
    ['password=$PASSWORD', 'password=$PASSWORD'],
    ['password=[redacted:password].', 'password=[redacted:password].'],
    ['password=hunter[redacted:', 'password=[redacted:password]'],
    ['my_secret=ab1', 'my_secret=[redacted:secret]'],
    ['api_key=ab1', 'api_key=[redacted:key]'],
  ])('%s', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('prose that resembles a secret', () => {
  test.each([
    ['unexpected token: foo', 'unexpected token: foo'],
    ['bad token:  foo', 'bad token:  foo'],
    ['the secret: app/db', 'the secret: app/db'],
    ['the secret: app/db1', 'the secret: [redacted:secret]'],
    ['bad token: abcdefghijklmno', 'bad token: abcdefghijklmno'],
    ['bad token: abcdefghijklmnop', 'bad token: [redacted:token]'],
    ['bad token:foo', 'bad token:[redacted:token]'],
    ['bad token=foo', 'bad token=[redacted:token]'],
    ['"token": foo', '"token": "[redacted:token]"'],
    ['my password: foo', 'my password: [redacted:password]'],
    ['token=12345', 'token=12345'],
    ['token=123456).', 'token=123456).'],
    ['token=1234567', 'token=[redacted:token]'],
    ['token=12345a', 'token=[redacted:token]'],
    ['token=a12345', 'token=[redacted:token]'],
    ['secret=12345', 'secret=12345'],
    ['secret=1234567', 'secret=[redacted:secret]'],
    ['secrets: 3', 'secrets: 3'],
    ['first pass: 812 rows', 'first pass: 812 rows'],
    ['db_pass=812', 'db_pass=[redacted:password]'],
    ['password=12345', 'password=[redacted:password]'],
    ['pwd=/srv/app', 'pwd=/srv/app'],
    ['PWD=~/app', 'PWD=~/app'],
    ['pwd=./app', 'pwd=./app'],
    ['pwd=a/b.c~d', 'pwd=[redacted:password]'],
    ['password=/srv/app', 'password=[redacted:password]'],
    ['next_token=abcdef1234567890', 'next_token=abcdef1234567890'],
    ['my_cookie=abcdef', 'my_cookie=abcdef'],
    ['my_authorization=abcdef', 'my_authorization=abcdef'],
    ['{my_cookie="abcdef"', '{my_cookie="[redacted:cookie]"'],
    ['x "password": 12345', 'x "password": "[redacted:password]"'],
    ['x \\"password\\": 12345, y', 'x \\"password\\": \\"[redacted:password]\\", y'],
    ['x "password": "12345"', 'x "password": "[redacted:password]"'],
  ])('%s', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('pairs of a name and a value in a text', () => {
  test.each([
    ['- name: DB_PASSWORD\n  value: hunter22', '- name: DB_PASSWORD\n  value: [redacted:password]'],
    ['- name: API_TOKEN\n  value: ab1', '- name: API_TOKEN\n  value: [redacted:token]'],
    ['- name: API_TOKEN\n  value: none', '- name: API_TOKEN\n  value: none'],
    ['- name: next_token\n  value: ab1cd', '- name: next_token\n  value: [redacted:secret]'],
    ['- name: LOG_LEVEL\n  value: debug', '- name: LOG_LEVEL\n  value: debug'],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('a secret behind its announcement', () => {
  test.each([
    ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted:header]'],
    ['Authorization: $TOKEN', 'Authorization: $TOKEN'],
    ['Authorization: Bearer [redacted:header]', 'Authorization: Bearer [redacted:header]'],
    ['Authorization: Custom [redacted:token]', 'Authorization: Custom [redacted:token]'],
    ['Authorization: Custom abc [redacted:token]', 'Authorization: [redacted:header]'],
    ['Authorization: abcdefghijklmnop [redacted:token]', 'Authorization: [redacted:header]'],
    ['http://bob:hunter22@db1/x', 'http://bob:[redacted:url]@db1/x'],
    ['http://bob:$PW@db1/x', 'http://bob:$PW@db1/x'],
    ['curl -u bob:hunter22 x', 'curl -u bob:[redacted:password] x'],
    ['run --db-password hunter22 x', 'run --db-password [redacted:password] x'],
  ])('%s', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('a JSON text', () => {
  test.each([
    ['keeps its blanks where it holds no secret', '{ "a":  "the password is missing" }'],
    ['keeps its numbers as they are written', '{"a":1.0,"pass":null}'],
    ['keeps digits beyond what doubles hold', '{"id":12345678901234567890,"password":null}'],
  ])('%s', (_title, text) => {
    expect(redact(text)).toBe(text)
  })

  test.each([
    ['{"password":"x y","id":12345678901234567890}', '{"password":"[redacted:password]","id":12345678901234567890}'],
    ['{"password":"x y","n":1e3}', '{"password":"[redacted:password]","n":1e3}'],
    ['{"password":"x y","n":1E400}', '{"password":"[redacted:password]","n":1E400}'],
    ['{"password":12345678901234567890}', '{"password":"[redacted:password]"}'],
    ['{"password":"x y","n":1.0}', '{"password":"[redacted:password]","n":1}'],
    [' \n{"password":"x y"}\n ', '{"password":"[redacted:password]"}'],
    ['{\n  "password": "x y"\n}', '{\n  "password": "[redacted:password]"\n}'],
    ['{\n\t"password": "x y"\n}', '{\n\t"password": "[redacted:password]"\n}'],
    ['{"a":{\n  "password": "x y"}}', '{"a":{"password":"[redacted:password]"}}'],
    ['{"password":"x y"} and more', '{"password":"[redacted:password]"} and more'],
    ['see {"password":"x y"}', 'see {"password":"[redacted:password]"}'],
    ['{"password":"x y"', '{"password":"[redacted:password]"'],
    ['{password=hunter22}', '{password=[redacted:password]}'],
    [`{"password":"x y"}${' '.repeat(90)}`, `{"password":"[redacted:password]"}${' '.repeat(90)}`],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('data', () => {
  test.each<[unknown, unknown]>([
    [
      ['mysql', '-phunter22'],
      ['mysql', '-p[redacted:password]'],
    ],
    [
      ['/usr/bin/mysqldump', '-phunter22'],
      ['/usr/bin/mysqldump', '-p[redacted:password]'],
    ],
    [
      ['ls', '-phunter22'],
      ['ls', '-phunter22'],
    ],
    [
      ['mysql', 'x-phunter22'],
      ['mysql', 'x-phunter22'],
    ],
    [
      ['-phunter22', 'mysql'],
      ['-phunter22', 'mysql'],
    ],
    [
      ['mysql', '-p[redacted:password]'],
      ['mysql', '-p[redacted:password]'],
    ],
    [
      [7, '-phunter22'],
      [7, '-phunter22'],
    ],
    [
      ['mysql', '-p'],
      ['mysql', '-p'],
    ],
    [
      ['run', '--token', 'hunter22'],
      ['run', '--token', '[redacted:password]'],
    ],
    [
      ['run', '--token', '--verbose'],
      ['run', '--token', '--verbose'],
    ],
    [
      ['run', '--token', 'hunter-'],
      ['run', '--token', '[redacted:password]'],
    ],
    [
      [7, 'hunter22'],
      [7, 'hunter22'],
    ],
    [
      { name: 'DB_PASSWORD', value: 'hunter22' },
      { name: 'DB_PASSWORD', value: '[redacted:password]' },
    ],
    [
      { key: 'DB_PASSWORD', VALUE: 'hunter22' },
      { key: 'DB_PASSWORD', VALUE: '[redacted:password]' },
    ],
    [
      { Name: 'DB_PASSWORD', value_of: 'hunter22' },
      { Name: 'DB_PASSWORD', value_of: 'hunter22' },
    ],
    [
      { Key: 'DB_PASSWORD', old_value: 'hunter22' },
      { Key: 'DB_PASSWORD', old_value: 'hunter22' },
    ],
    [{ token: 999_999 }, { token: 999_999 }],
    [{ token: 1_000_000 }, { token: '[redacted:token]' }],
    [
      { secret: 3, pass: 44 },
      { secret: 3, pass: 44 },
    ],
    [{ password: 7 }, { password: '[redacted:password]' }],
    [{ password: true }, { password: true }],
    [{ password: ['a b', 7, { x: 'y' }] }, { password: ['[redacted:password]', '[redacted:password]', { x: 'y' }] }],
    [{ 'password=hunter22': 1 }, { 'password=[redacted:password]': 1 }],
  ])('%j', (value, expected) => {
    expect(redactJson(value)).toEqual(expected)
  })

  test('without a secret is the same object, and values that JSON cannot express are left out', () => {
    const plain = { a: [1, { b: 'x' }] }
    expect(redactJson(plain)).toBe(plain)
    expect(Object.keys(redactJson({ a: undefined, b: 1 }))).toEqual(['b'])
  })

  test('nested without end is cut at 400 levels', () => {
    const nested = (depth: number, wrap: (inner: unknown) => unknown) => {
      let value: unknown = ['x']
      for (let n = 0; n < depth; n += 1) value = wrap(value)
      return JSON.stringify(redactJson(value))
    }
    const kinds: ((inner: unknown) => unknown)[] = [(x) => [x], (x) => ({ x }), (x) => ({ password: x })]
    for (const wrap of kinds) {
      expect(nested(400, wrap)).not.toContain('too deep')
      expect(nested(402, wrap)).toContain('too deep')
    }
    expect(() => nested(3_000, (x) => ({ password: [x] }))).not.toThrow()
  })

  test('is secret if a part of it would be removed', () => {
    expect([isSecretive('password=hunter22'), isSecretive('password=true')]).toEqual([true, false])
    expect([isSecretive({ a: ['password=hunter22'] }), isSecretive({ a: ['x'] })]).toEqual([true, false])
    expect([isSecretive({ password: 'hunter22' }), isSecretive(7), isSecretive(null)]).toEqual([true, false, false])
    // Left out by JSON, and no secret.
    expect(isSecretive({ a: undefined })).toBe(false)
  })
})

describe('a name', () => {
  test.each([
    [`${'x'.repeat(112)}password`, 'password'],
    [`${'x'.repeat(113)}password`, null],
    ['access key', 'key'],
    ['api key', 'key'],
    ['tokens', null],
    ['public_key', null],
    ['client secret', 'secret'],
  ])('%s promises %s', (name, kind) => {
    expect(kindOfName(name)).toBe(kind)
  })
})

describe('a name that may hold a secret', () => {
  test.each([
    ['a key of ours', '{"key":"inc_01m80aeg138qqad7z6e61bcpc0.1:3:tool_started:0"}'],
    ['an id of ours behind a word', 'down too (own incident inc_01m80aks8zr6jz2e9xq3dtnbpk): look'],
    ['a key of a table', 'cache_key=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
    ['a key in small letters', 'key=9f86d081884c7d659a2feaa0c55ad015'],
    ['a fingerprint of a key', 'gpg: using RSA key 4AEE18F83AFDEB23C0DE4AEE18F83AFDEB23C0DE'],
    ['a name of a Kubernetes Secret', 'kube_secret_info{secret="app-env"} 1'],
    ['an id', 'session_id=123e4567-e89b-42d3-a456-426614174000'],
  ])('keeps %s', (_title, text) => {
    expect(redact(text)).toBe(text)
  })

  test.each([
    ['a value under it', { credentials: { user: 'app', value: 'Hunter22' } }, 'Hunter22'],
    ['a pair by its type', { name: '/app/db', type: 'password', value: 'Hunter22' }, 'Hunter22'],
    ['a part of a key', { kty: 'oct', k: 'Hunter22' }, 'Hunter22'],
    ['what chance made', { HASH_SALT: 'aB3dE5gH7jK9mN1pQ3sT' }, 'aB3dE5gH7jK9mN1pQ3sT'],
  ])('loses %s', (_title, value, secret) => {
    expect(JSON.stringify(redactJson(value))).not.toContain(secret)
  })
})

test.each(['', 'NULL', 'required.', '$PW', '$(pw)', '{{ pw }}', '<password>', '****', '[redacted:token]'])(
  '%j is no secret',
  (text) => {
    expect(isNoSecret(text)).toBe(true)
  },
)
