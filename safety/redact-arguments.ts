import { isNoSecret, looksEncoded, looksMade, mark, secretNamePattern } from './redact-names.ts'
import type { SecretRule } from './redact-rules.ts'

/**
 * Finds secrets in the words of a command line: after a flag whose name announces a secret, after a
 * flag of a listed program, at the position where a listed program takes a password, and before a
 * pipe. Each pattern reads one line, and skips parts that are already redacted.
 */

/** Matches flags whose value is the next argument and secret. */
export const secretFlag = new RegExp(`^--?[a-z0-9-]{0,40}(?:${secretNamePattern})$`, 'i')

/** Matches programs that take a password attached to `-p`. */
export const gluesPassword = /^(?:\S*\/)?(?:mysql|mariadb)[a-z-]*$|^(?:\S*\/)?sshpass$/

/**
 * The text directly before a password, by program. If this text ends in a blank, the password is
 * the next word; otherwise the password is attached to the text.
 */
const flagged: readonly [program: string, before: string][] = [
  ['mysql\\w*|mariadb[\\w-]*|sshpass|7z[a-z]?|unrar|rar', '-p(?! |\\d{1,5}\\b)'],
  ['sshpass|cqlsh|mongo\\w*|beeline|racadm|rabbitmqadmin|nodetool', '-p '],
  ['(?:docker|podman|helm|oc|crane|buildah|az)[ \\t][^\\n|;&]{0,60}\\blogin', '-p '],
  ['sqlcmd|bcp|mosquitto_\\w{3}|zip|unzip', '-P ?'],
  ['ipmitool|ipmi-\\w{2,20}|fence_\\w{2,20}', '-[Pp] '],
  ['plink|pscp|psftp|nodetool|kadmin(?:\\.local)?', '-pw '],
  ['ldap\\w{1,10}|kadmin', '-[ws] '],
  ['redis-cli', '-a '],
  ['snmp[a-z]{2,12}', '-[cAX] ?'],
  ['openssl[ \\t]{1,4}\\w{2,12}', '-[kK] (?!pass:)'],
  ['ssh-keygen', '-[NP] '],
  ['curl', '(?:-u|--user|-U|--proxy-user) ?["\']?[^\\s:"\'\\\\]{0,128}:'],
  ['etcdctl', '--user[ =]["\']?[^\\s:"\'\\\\]{1,128}:'],
  ['skopeo|podman|buildah|crane', '--(?:src-|dest-)?creds[ =]["\']?[^\\s:"\'\\\\]{1,128}:'],
  ['smb\\w{2,12}|rpcclient|net|wbinfo', '(?:-U|--user=?) ?[\\w.\\\\@-]{1,64}%'],
  ['lftp', '-u ?[^\\s,"\'\\\\]{1,64},'],
  ['xfreerdp|wlfreerdp', '/p:'],
  ['vault[ \\t]{1,4}(?:kv[ \\t]{1,4}(?:put|patch)|write)', '[\\w.-]{1,64}='],
  ['secrets?[\\w-]{0,20}|put-parameter|credentials?', '--(?:value|base64|data|text|plaintext) '],
  ['kubectl[ \\t][^\\n|;&]{0,60}\\bsecret', '["\']?--from-literal[ =]["\']?[\\w.-]{1,253}='],
]

/** The words before a password without a flag, by program. */
const placed: readonly string[] = [
  'rabbitmqctl[ \\t]+(?:add_user|change_password)[ \\t]+\\S{1,64}',
  'wpa_passphrase[ \\t]+\\S{1,64}',
  'htpasswd[ \\t]+-(?:[a-mo-z]{0,6}b[a-mo-z]{0,6}[ \\t]+\\S{1,255}|(?=\\w{0,8}b)(?=\\w{0,8}n)\\w{1,8})[ \\t]+\\S{1,64}',
  'radtest[ \\t]+\\S{1,64}',
  'radtest[ \\t]+\\S{1,64}[ \\t]+\\S{1,255}[ \\t]+\\S{1,255}[ \\t]+\\d{1,5}',
  'reset-admin-password',
  'vault[ \\t]+login(?:[ \\t]+-[\\w=-]{1,40}){0,3}',
  'set_password[ \\t]+\\w{1,16}',
  'net[ \\t]+use[ \\t]+(?:\\w:|\\*)[ \\t]+\\S{1,255}',
]

/** Programs that read a password from their input. */
const readers =
  'kinit\\b|sudo[ \\t][^\\n|;&]{0,60}-S\\b|[^\\n|]{0,80}(?:--(?:password-)?stdin|--passphrase-fd|--pw-stdin)\\b|cryptsetup\\b|(?:\\S{0,40}/)?chpasswd\\b|smbpasswd\\b|su[ \\t]'

const flagValue = '(?<value>(?!\\[redacted:)[^\\s"\'\\\\;&|<>-][^\\s"\'\\\\;&|<>]{0,255})'
const blank = '(?:[ \\t]{1,8}["\']?|\\\\*["\'][ \\t]{0,8},[ \\t\\n]{0,40}\\\\*["\'])'

const hide: SecretRule['replace'] = (match, { head = '', value = '' }) =>
  isNoSecret(value) ? match : `${head}${mark('password')}`

const argument = (head: string, value = flagValue, flags = 'g'): SecretRule => ({
  kind: 'password',
  pattern: new RegExp(`(?<head>${head})${value}`, flags),
  replace: hide,
})

const spaced = (flag: string) => flag.replace(/ (\??)$/, (_, optional) => (optional ? '[ \\t]{0,4}' : blank))

const byProgram = flagged.map(
  ([program, before]) => `(?:${program})\\b[^\\n|;&]{0,400}?[ \\t"',]["']?${spaced(before)}`,
)

export const argumentRules: SecretRule[] = [
  {
    ...argument(
      `(?<![\\w-])--?[a-z0-9-]{0,40}(?:${secretNamePattern}|certificate-key|bearer|pw)(?:${blank}|=["']?)`,
      flagValue,
      'gi',
    ),
    hints: ['-'],
  },
  { ...argument('(?:-?-pass(?:in|out)?|-k)[ \\t=]{1,4}pass:'), hints: ['pass:'] },
  { ...argument(`\\b(?:${byProgram.join('|')})["']?`), again: 3 },
  // Handles all other programs: a usual letter for a password, then a word like base64.
  {
    ...argument(`[ \\t]-(?:[pPwWakANX]|pw)[ \\t]{0,4}["']?(?:[\\w.-]{1,64}:)?`),
    hints: [' -'],
    replace: (match, { head = '', value = '' }) =>
      looksEncoded(value, 10) && !/[/:=]/.test(value) ? `${head}${mark('password')}` : match,
  },
  {
    again: 2,
    ...argument(`\\b(?:${placed.join('|')})[ \\t]+["']?`),
    test: /rabbitmqctl|wpa_passphrase|htpasswd|radtest|reset-admin|set_password|vault|\bnet[ \t]+use/,
    replace: (match, { head = '', value = '' }) => (looksMade(value) ? `${head}${mark('password')}` : match),
  },
  {
    ...argument('(?<![\\w/])[\\w.]{1,64}\\/', '(?<value>(?!\\[redacted:)[^\\s"\'\\\\;<>@/]{3,128})(?=@(?://)?[\\w.-])'),
    hints: ['@'],
    test: /\b(?:sqlplus|rman|expdp|impdp)\b|@\/\//,
  },
  {
    ...argument(
      '\\bsqlplus[ \\t][^\\n|;&]{0,100}?[\\w.]{1,64}\\/',
      '(?<value>(?!\\[redacted:)[^\\s"\'\\\\;&|<>@/]{3,128})(?=\\s|$)',
    ),
    hints: ['sqlplus'],
  },
  {
    ...argument(
      `\\becho[ \\t]{1,8}(?:-n[ \\t]{1,4})?["']?(?:[\\w.-]{1,64}:)?`,
      `(?<value>(?!\\[redacted:)[^\\s"'\\\\;&|<>$\`-][^\\s"'\\\\;&|<>$\`]{2,255})(?=["']?[ \\t]{0,8}\\|[ \\t]{0,8}(?:${readers}))`,
    ),
    hints: ['echo'],
  },
  {
    ...argument('\\becho[ \\t]{1,8}(?:-n[ \\t]{1,4})?["\']?'),
    hints: ['echo'],
    replace: (match, { head = '', value = '' }) => (looksEncoded(value, 24) ? `${head}${mark('key')}` : match),
  },
]
