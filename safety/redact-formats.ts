import { isNoSecret, looksEncoded, looksMade, looksRandom, mark, type SecretKind } from './redact-names.ts'
import type { SecretRule } from './redact-rules.ts'

/**
 * Finds secrets in files of a known form, where no name of a secret stands next to the secret. Each
 * pattern is bounded. Each pattern reads one line, unless its comment says otherwise.
 */
const keep =
  (kind: SecretKind) =>
  (match: string, { head = '', value = '', tail = '' }: Record<string, string | undefined>): string =>
    isNoSecret(value) || value.includes('[redacted') ? match : `${head}${mark(kind)}${tail}`

const rule = (kind: SecretKind, hints: string[], pattern: RegExp): SecretRule => ({
  kind,
  hints,
  pattern,
  replace: keep(kind),
})

/** Builds a rule for a word that must also pass the test `is`, such as that it looks random. */
const ruleIf = (kind: SecretKind, is: (value: string) => boolean, hints: string[], pattern: RegExp): SecretRule => ({
  kind,
  hints,
  pattern,
  replace: (match, { head = '', value = '', tail = '' }) =>
    is(value) && !isNoSecret(value) && !value.includes('[redacted') ? `${head}${mark(kind)}${tail}` : match,
})

const line = '(?<=^|[\\n\\r"]|\\\\n)'
/** Matches a word of a file, perhaps in quotes, up to a blank. */
const word = '["\']?(?<value>[^\\s"\'\\\\;]{1,256})(?<tail>["\']?)'

export const formats: SecretRule[] = [
  // .pgpass: host:port:database:user:password
  rule(
    'password',
    [':'],
    new RegExp(
      `(?<head>${line}(?:[\\w.*-]{1,255}|\\[[0-9a-f:]{2,45}\\]):(?:\\d{1,5}|\\*):[\\w.*-]{1,128}:[\\w.*@-]{1,128}:)(?<value>(?!\\d{1,5}(?:[\\s:]|$))[^\\s"\\\\:]{4,256})(?=\\s|["\\\\]|$)`,
      'g',
    ),
  ),
  // .netrc: machine … login … password …
  rule(
    'password',
    ['machine', 'login'],
    new RegExp(
      `(?<head>\\b(?:machine|login)[ \\t]{1,8}\\S{1,255}(?:\\s{1,16}(?:login|account)[ \\t]{1,8}\\S{1,255}){0,2}\\s{1,16}password[ \\t]{1,8})${word}`,
      'g',
    ),
  ),
  // docker's config.json, also as a Kubernetes secret
  rule(
    'token',
    ['auth'],
    /(?<head>\\*["'](?:auth|identitytoken|registrytoken)\\*["'][ \t]{0,8}:[ \t]{0,8}\\*["'])(?<value>[A-Za-z0-9+/=._-]{8,4096})/g,
  ),
  // kubeconfig
  rule(
    'private_key',
    ['client-key-data'],
    /(?<head>\bclient-key-data\\*["']?[ \t]{0,8}:[ \t]{0,8}\\*["']?)(?<value>[A-Za-z0-9+/=]{8,16384})/g,
  ),
  // Data of a Kubernetes Secret: every value in base64, under any key.
  {
    kind: 'secret',
    hints: ['Secret'],
    pattern:
      /(?<head>\bkind:[ \t]{1,4}Secret\b[\s\S]{0,2000}?\n(?<indent>[ \t]{0,8})(?:data|stringData):[ \t]{0,4}\n)(?<block>(?:\k<indent>[ \t]{1,8}[^\n]{0,8192}(?:\n|$)){1,200})/g,
    replace: (_match, { head = '', block = '' }) => head + blockWithout(block),
  },
  {
    kind: 'secret',
    hints: ['Secret'],
    pattern:
      /(?<head>\n(?<indent>[ \t]{0,8})(?:data|stringData):[ \t]{0,4}\n)(?<block>(?:\k<indent>[ \t]{1,8}[^\n]{0,8192}\n){1,200})(?=(?:[\s\S]{0,2000}?\n)?\k<indent>kind:[ \t]{1,4}Secret\b)/g,
    replace: (_match, { head = '', block = '' }) => head + blockWithout(block),
  },
  // One line of a Kubernetes Secret: base64 of a private key, of docker's configuration, of a JSON
  // web token, or of an address.
  rule(
    'secret',
    ['LS0tLS1CRUdJTi', 'eyJhdXRocyI6', 'ZXlK', '6Ly', 'Oi8v'],
    /(?<head>(?<![A-Za-z0-9+/]))(?<value>(?:LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM|BUUlVT)|eyJhdXRocyI6|ZXlK(?=[A-Za-z0-9+/]{60})|(?:cG9zdGdyZX|bXlzcWw6Ly|cmVkaXM6Ly|cmVkaXNzOi|bW9uZ29kYj|YW1xcDovL|YW1xcHM6L))[A-Za-z0-9+/=]{16,65536})/g,
  ),
  {
    kind: 'secret',
    hints: ['data'],
    test: /"kind\\*"[ \t]{0,4}:[ \t]{0,4}\\*"Secret|\bsecrets?\b[^\n]{0,200}"(?:data|stringData)\\*"/,
    pattern: /(?<head>\\*"(?:data|stringData)\\*"[ \t]{0,4}:[ \t]{0,4}\{)(?<value>[^{}\n]{1,65536})/g,
    replace: (_match, { head = '', value = '' }) =>
      head +
      value.replace(
        /(:[ \t]{0,4}\\*")(?!\[redacted:)([^"\\]{1,65536})/g,
        (_each, before: string) => `${before}${mark('secret')}`,
      ),
  },
  // Parts of JSON web keys (RFC 7517), each alone
  ruleIf(
    'private_key',
    (value) => looksEncoded(value, 22),
    ['"d', '"p', '"q', '"k'],
    /(?<head>\\*"(?:d|p|q|dp|dq|qi|k)\\*"[ \t]{0,4}:[ \t]{0,4}\\*")(?<value>[A-Za-z0-9_-]{22,4096})/g,
  ),
  // Lists of users with their passwords: pgbouncer, rsync, exim, chpasswd; also in quotes
  ruleIf(
    'password',
    (value) => looksRandom(value, 12),
    ['" "'],
    /(?<head>(?<=^|\n)"[\w.@-]{1,64}" ")(?<value>[^\s"\\]{12,256})(?<tail>")(?=[ \t]{0,4}(?:\n|$))/g,
  ),
  ruleIf(
    'password',
    (value) => looksEncoded(value, 12),
    [':'],
    /(?<head>(?:(?<=^|\n)[ \t]{0,16}|["'=;])(?!(?:SHA|sha|h|v|MD|md)\d)(?:[\w.@*-]{1,64}:){1,2})(?<value>[^\s"'\\:@,;/][^\s"'\\:@,;]{11,255})(?<tail>["']?)(?=\s|;|"|$)/g,
  ),
  // Output of a program at its first start: the secret follows its purpose, or is one line lower.
  ruleIf(
    'password',
    (value) => looksRandom(value, 12),
    ['assword'],
    /(?<head>\b[Pp]assword\b[^\n]{0,120}[:.][ \t]{0,8}\n\s{0,16}(?:New value:[ \t]{1,4})?)(?<value>[^\s"'\\]{12,256})(?=\s|$)/g,
  ),
  ruleIf(
    'password',
    (value) => looksRandom(value, 10),
    ['assword'],
    /(?<head>\b[Pp]assword\b[^\n:]{1,80}:[ \t]{1,4})(?<value>[^\s"'\\:/]{10,256})(?=\s|$)/g,
  ),
  ruleIf(
    'token',
    (value) => looksRandom(value),
    ['ecret'],
    /(?<head>\b[Ss]ecret[ _-]?I[Dd][ \t]{0,16}[=: ][ \t]{0,16})(?<value>[0-9a-f-]{36})/gi,
  ),
  ruleIf(
    'token',
    (value) => looksRandom(value),
    [','],
    /(?<head>(?<=^|\n))(?<value>[A-Za-z0-9_-]{20,64})(?=,[\w.@:-]{1,64},[\w-]{1,64}(?:,|\n|$))/g,
  ),
  rule('token', ['join'], /(?<head>\bjoin[ \t]{1,4}[\w.:-]{1,255}\/)(?<value>[a-f0-9]{32}(?:\/[a-f0-9]{8,64})?)/g),
  rule('token', ['.'], /(?<head>(?<=^|\n))(?<value>[a-z0-9]{6}\.[a-z0-9]{16})(?=[ \t]+(?:\d{1,4}[hms]|<\w+>)[ \t])/g),
  rule(
    'key',
    ['Unseal Key', 'Recovery Key'],
    /(?<head>\b(?:Unseal|Recovery) Key \d{1,3}: )(?<value>[A-Za-z0-9+/=]{20,128})/g,
  ),
  // Keys of DNS programs, and users of login modules.
  rule('key', ['hmac-'], /(?<head>\bhmac-[\w-]{3,12}:[\w.-]{1,255}:)(?<value>[A-Za-z0-9+/=]{8,256})/g),
  ruleIf('password', looksMade, ['user_'], /(?<head>\buser_[\w-]{1,64}=\\*")(?<value>[^\s"\\]{4,256})/g),
  ruleIf(
    'password',
    looksMade,
    ['.auth('],
    /(?<head>\bauth\([ \t]{0,4}["'][^"'\n]{1,128}["'][ \t]{0,4},[ \t]{0,4}["'])(?<value>[^"'\\\n]{1,256})/g,
  ),
  ruleIf('password', looksMade, ['$USER'], /(?<head>\$USER\d{1,3}\$=)(?<value>[^\s"'\\]{6,256})/g),
  rule(
    'password',
    ['<auth-user-pass>'],
    /(?<head><auth-user-pass>\s{1,8}\S{1,128}\n[ \t]{0,8})(?<value>[^\s<"'\\]{1,256})/g,
  ),
  // SQL: IDENTIFIED BY '…', PASSWORD '…'
  rule(
    'password',
    ['IDENTIFIED', 'identified', 'PASSWORD', 'password', 'Identified', 'Password', 'SECRET', 'secret'],
    /(?<head>\b(?:identified[ \t]{1,8}(?:with[ \t]{1,8}\S{1,64}[ \t]{1,8})?(?:by|as)(?:[ \t]{1,8}password)?|(?:encrypted[ \t]{1,8})?password(?:[ \t]{1,8}for[ \t]{1,8}\S{1,128}[ \t]{0,8}=)?|(?<!\bin[ \t])secret|secret_access_key)[ \t]{1,8}N?\\*')(?<value>[^'\\\n]{1,256})/gi,
  ),
  ruleIf(
    'password',
    looksMade,
    ['IDENTIFIED', 'identified', 'Identified'],
    /(?<head>\bidentified[ \t]{1,8}by[ \t]{1,8}\\*"?)(?<value>[^\s'"\\;]{6,256})/gi,
  ),
  rule(
    'password',
    ['pgp_sym_'],
    /(?<head>\bpgp_sym_(?:en|de)crypt(?:_bytea)?\([^\n;]{1,400}?,[ \t]{0,4}')(?<value>[^'\\\n]{1,256})/g,
  ),
  rule('password', ['PASSWORD(', 'password('], /(?<head>\bpassword\([ \t]{0,4}\\*["'])(?<value>[^"'\\\n]{1,256})/gi),
  // SNMP: communities and users
  rule(
    'password',
    ['community', 'com2sec', 'snmp', 'trap', 'COMMUNITY'],
    new RegExp(
      `(?<head>\\b(?:r[ow]community6?|trapcommunity|snmp-server[ \\t]{1,8}community|set[ \\t]{1,8}snmp[ \\t]{1,8}community|com2sec6?[ \\t]{1,8}\\S{1,64}[ \\t]{1,8}\\S{1,128}|trap2?sink[ \\t]{1,8}\\S{1,128})[ \\t]{1,8})${word}`,
      'gi',
    ),
  ),
  rule(
    'password',
    ['createUser', 'usmUser'],
    new RegExp(`(?<head>\\bcreateUser[ \\t]{1,8}\\S{1,128}[ \\t]{1,8}(?:MD5|SHA(?:-\\d{3})?)[ \\t]{1,8})${word}`, 'g'),
  ),
  rule(
    'password',
    ['AES', 'DES'],
    new RegExp(`(?<head>\\bcreateUser\\b[^\\n]{1,300}[ \\t](?:AES(?:-?\\d{3})?|DES)[ \\t]{1,8})${word}`, 'g'),
  ),
  // Directives with a password in plain text: Redis, keepalived, HAProxy.
  rule(
    'password',
    ['requirepass', 'masterauth', 'sentinel', 'auth_pass', 'insecure-password', 'stats auth'],
    new RegExp(
      `(?<head>\\b(?:(?:requirepass|masterauth|auth_pass|insecure-password|sentinel[ \\t]{1,4}auth-pass[ \\t]{1,4}\\S{1,64})[ \\t]{1,8}|stats[ \\t]{1,8}auth[ \\t]{1,8}[^\\s:]{1,128}:))${word}`,
      'gi',
    ),
  ),
  rule(
    'password',
    ['AUTH ', 'auth '],
    /(?<head>(?<=^|["'\n])AUTH[ \t]{1,4}(?:[\w.-]{1,64}[ \t]{1,4})?)(?<value>[^\s"'\\]{6,256})(?=$|["'\n\r])/g,
  ),
  rule(
    'password',
    ['ACL', 'user ', 'setuser'],
    /(?<head>\b(?:acl[ \t]{1,4}setuser|user)[ \t]{1,4}\S{1,64}[^\n]{0,200}?[ \t]>)(?<value>[^\s"'\\]{1,256})/gi,
  ),
  // Configuration of network devices
  rule(
    'password',
    ['secret', 'password'],
    /(?<head>\b(?:enable|username[ \t]{1,4}\S{1,64}(?:[ \t]{1,4}privilege[ \t]{1,4}\d{1,2})?|neighbor[ \t]{1,4}\S{1,64}|line[ \t]{1,4}vty[^\n]{0,40})[ \t]{1,4}(?:secret|password)[ \t]{1,4}(?:\d[ \t]{1,4})?)(?<value>(?!is\b|for\b|has\b|was\b|not\b)[^\s"'\\]{3,256})/gi,
  ),
  rule(
    'password',
    ['key-string', 'key 7', 'tacacs', 'radius', 'authentication-key', 'tcp-md5'],
    /(?<head>\b(?:key-string|authentication-key|tcp-md5|(?:tacacs|radius)(?:-server)?[^\n]{0,80}?[ \t]key)[ \t]{1,4}(?:\d[ \t]{1,4})?)(?<value>[^\s"'\\]{3,256})/gi,
  ),
  // VPN and wireless
  rule(
    'password',
    ['PSK', 'XAUTH', 'EAP'],
    /(?<head>:[ \t]{1,8}(?:PSK|XAUTH|EAP)[ \t]{1,8}["']?)(?<value>[^\s"'\\]{1,256})/g,
  ),
  {
    kind: 'private_key',
    hints: ['Static key', 'Private-Lines'],
    pattern:
      /(?<head>-----BEGIN OpenVPN Static key V1-----|\bPrivate-Lines: \d{1,4})(?<value>(?:(?:\s|\\n){1,4}[0-9a-zA-Z+/=]{16,128}){1,120})/g,
    replace: keep('private_key'),
  },
  // PPP, Samba, mail
  rule(
    'password',
    ['*', 'chap', 'pap'],
    /(?<head>(?<=^|\n)["']?[\w.@-]{1,64}["']?[ \t]{1,8}(?:\*|["'][\w.*-]{1,64}["'])[ \t]{1,8}")(?<value>[^\s"\\]{4,256})/g,
  ),
  rule(
    'password',
    ['smtp', 'relayhost', ']:', 'sasl'],
    /(?<head>(?<=^|\n|")\[?[\w.-]{3,255}\]?:\d{2,5}[ \t]{1,8}[^\s:]{1,128}:)(?<value>[^\s"'\\]{3,256})/g,
  ),
  rule('hash', [':'], /(?<head>\b[\w.$-]{1,64}:\d{3,6}:)(?<value>[0-9A-Fa-f]{32}:[0-9A-Fa-f]{32})/g),
  rule(
    'hash',
    ['{S', '{C', '{M', '{P'],
    /(?<head>\{(?:S?SHA(?:256|384|512)?|SMD5|MD5|CRYPT|PBKDF2[\w-]{0,10})\})(?<value>[A-Za-z0-9+/=.$]{16,256})/g,
  ),
  rule(
    'password',
    ['{PLAIN', '{CLEAR'],
    /(?<head>\{(?:PLAIN|CLEARTEXT|CLEAR|PLAIN-MD5)\})(?<value>[^\s"'\\:]{3,256})/gi,
  ),
  rule(
    'password',
    ['chap-secrets', 'pap-secrets'],
    /(?<head>(?<=^|\n)[\w.@-]{1,64}[ \t]{1,8}\*[ \t]{1,8})(?<value>[^\s"'\\*]{4,256})(?=[^\n]{0,80}(?:chap|pap)-secrets)/g,
  ),
  rule(
    'secret',
    ['ENV '],
    /(?<head>(?<=^|\n)ENV[ \t]{1,8}[A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|TOKEN|SECRET|API_KEY|ACCESS_KEY|PASSPHRASE)[ \t]{1,8})(?<value>[^\s"'\\]{4,4096})/g,
  ),
  rule(
    'password',
    ['erlang_cookie', 'ERLANG_COOKIE', 'setcookie'],
    /(?<head>\b(?:erlang_cookie[ \t]{0,8}[=:][ \t]{0,8}["']?|-setcookie[ \t]{1,8}))(?<value>[^\s"'\\]{4,256})/gi,
  ),
  // Oracle's thin driver: user/password@host
  rule('password', ['oracle:'], /(?<head>\boracle:(?:thin|oci\d?):[\w.$-]{1,64}\/)(?<value>[^\s"'\\@/]{1,128})(?=@)/g),
  // Sentences that announce a password.
  ruleIf(
    'password',
    (value) => looksRandom(value, 10),
    ['assword'],
    /(?<head>\b[Pp]assword\b[^\n:=]{0,80}?[ \t](?:is|to)[ \t:]{1,4}["'`]?)(?<value>[^\s"'`\\:/,]{10,256})/g,
  ),
  // A flag and its value on two lines, as a description lists them.
  ruleIf(
    'password',
    looksMade,
    ['--'],
    /(?<head>(?<=^|\n)[ \t]{1,16}--?[a-z0-9-]{0,40}(?:password|passwd|token|secret|api-key|access-key)\n[ \t]{1,16})(?<value>[^\s"'\\-][^\s"'\\]{5,256})(?=\n|$)/g,
  ),
  // PHP's define()
  rule(
    'key',
    ['define'],
    /(?<head>\bdefine\([ \t]{0,4}\\*["'][A-Z_]{0,40}(?:(?:AUTH|LOGGED_IN|NONCE|SECURE_AUTH)_(?:KEY|SALT)|PASSWORD|SECRET|TOKEN)\\*["'][ \t]{0,4},[ \t]{0,8}\\*["'])(?<value>[^"'\\\n]{4,512})/g,
  ),
  rule(
    'token',
    ['OP_SESSION_', 'op_session_'],
    /(?<head>\bop_session_\w{1,64}\\*["']?[ \t]{0,4}[:=][ \t]{0,4}\\*["']?)(?<value>[^\s"'\\]{8,512})/gi,
  ),
]

function blockWithout(block: string): string {
  return block.replace(
    /^([ \t]{1,16}[^\s:#][^:\n]{0,253}:[ \t]{1,8})(?!\[redacted:)(["']?)([^\s"'|>][^\n"']{0,8191})\2[ \t]{0,4}$/gm,
    (_line, head: string, quote: string) => `${head}${quote}${mark('secret')}${quote}`,
  )
}
