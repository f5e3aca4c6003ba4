import { rule } from './redact-formats.ts'
import type { Rule } from './redact-rules.ts'

/** Secrets that are a word of a command line, or of a line that a program printed, whose name is a letter or none. Each pattern looks at one line. */
export const argumentRules: Rule[] = [
  rule('password', ['pass:'], /(?<head>(?:-?-pass(?:in|out)?|-k)[ \t=]{1,4}pass:)(?<value>[^\s"'\\;&|<>]{1,256})/g),
  rule(
    'password',
    ['pass '],
    /(?<head>-(?:store|key|src(?:store|key)|dest(?:store|key))pass[ \t]{1,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
  ),
  rule(
    'password',
    ['ipmitool', 'ipmi', 'fence_'],
    /(?<head>\b(?:ipmitool|ipmi-\w{2,20}|fence_\w{2,20})\b[^\n|;&]{0,200}?[ \t]-[Pp][ \t]{1,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
  ),
  rule(
    'password',
    ['7z', 'rar'],
    /(?<head>\b(?:7z[a-z]?|unrar|rar)[ \t][^\n|;&]{0,200}?[ \t]-p)(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{3,255})/g,
  ),
  rule(
    'password',
    ['sqlplus', 'rman', 'expdp', 'impdp'],
    /(?<head>\b(?:sqlplus|rman|expdp|impdp)[ \t][^\n|;&]{0,100}?[\w.]{1,64}\/)(?<value>[^\s"'\\;&|<>@/]{3,128})(?=@|\s|$)/g,
  ),
  rule(
    'password',
    ['smbclient', 'rpcclient', 'mount.cifs', 'smb'],
    /(?<head>\b(?:smb\w{2,12}|rpcclient|net|wbinfo)\b[^\n|;&]{0,200}?[ \t](?:-U|--user=?)[ \t]{0,4}[\w.\\@-]{1,64}%)(?<value>[^\s"'\\;&|<>]{1,256})/g,
  ),
  rule(
    'password',
    ['sudo'],
    /(?<head>\becho[ \t]{1,8}["']?)(?<value>[^\s"'\\;&|<>$`-][^\s"'\\;&|<>$`]{2,255})(?=["']?[ \t]{0,8}\|[ \t]{0,8}sudo[ \t][^\n|;&]{0,60}-S\b)/g,
  ),
  rule(
    'url',
    ['grant_type=authorization_code'],
    /(?<head>(?<=^|[?&\s"'])code=)(?<value>[^&\s"'\\#<>]{8,1024})(?=[^\s"'\\]{0,400}grant_type=authorization_code)/g,
  ),
  rule('header', ['ApiKey '], /(?<head>\bApiKey[ \t]{1,4})(?<value>(?=[^\s"'\\]{0,200}\d)[A-Za-z0-9+/=_-]{24,512})/g),
  rule('query', ['X-Amz-Signature', 'x-amz-signature'], /(?<head>\bx-amz-signature=)(?<value>[a-f0-9]{64})/gi),
  rule(
    'password',
    ['pass ='],
    /(?<head>(?<=^|\n)[ \t]{0,8}pass[ \t]{1,8}=[ \t]{1,8})(?<value>(?!\d{1,6}\s)[^\s"'\\]{6,512})(?=\s|$)/g,
  ),
  rule(
    'password',
    ['zip -', 'unzip -'],
    /(?<head>\b(?:un)?zip\b[^\n|;&]{0,120}?[ \t]-P[ \t]{0,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{2,255})/g,
  ),
  rule(
    'key',
    ['Unseal Key', 'Recovery Key'],
    /(?<head>\b(?:Unseal|Recovery) Key \d{1,3}: )(?<value>[A-Za-z0-9+/=]{20,128})/g,
  ),
  rule(
    'password',
    ['chpasswd'],
    /(?<head>\becho[ \t]{1,8}["']?[\w.-]{1,64}:)(?<value>[^\s"'\\|]{1,256})(?=["']?[ \t]{0,8}\|[^\n|;&]{0,40}\bchpasswd\b)/g,
  ),
]
