import { parse } from '../../../safety/command/parse.ts'
import { quote } from '../../../safety/command/unwrapped.ts'

/** One command of plain words, so that each of them can be dressed by itself. */
export function wordsOf(text: string): string[] | null {
  const tree = parse(text)
  const [pipeline, another] = tree?.pipelines ?? []
  const [simple, second] = pipeline ?? []
  if (!tree || another || second || !simple || tree.shapes.length > 0 || tree.error) return null
  if (simple.redirections.length > 0 || simple.assignments.length > 0 || simple.words.length === 0) return null
  const isPlain = simple.words.every(({ text, literal }) => literal && /^[\w./:@%+,=-]+$/.test(text))
  return isPlain ? simple.words.map(({ text }) => text) : null
}

const hex = (text: string) => [...text].map((character) => `\\x${character.charCodeAt(0).toString(16)}`).join('')
const octal = (text: string) =>
  [...text].map((character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`).join('')
const base64 = (text: string) => Buffer.from(text).toString('base64')
const half = (text: string) => Math.max(1, Math.floor(text.length / 2))

/** One word in other clothes. */
const dressWord: Readonly<Record<string, (word: string) => string>> = {
  'empty quotes': (word) => `${word.slice(0, half(word))}''${word.slice(half(word))}`,
  'double quotes inside': (word) => `${word.slice(0, -1)}"${word.slice(-1)}"`,
  'a backslash': (word) => `\\${word}`,
  'a backslash inside': (word) => `${word.slice(0, -1)}\\${word.slice(-1)}`,
  // At the end of a text a shell keeps the backslash, so there is nothing to continue.
  'a continued line': (word) =>
    word.length === 1 ? word : `${word.slice(0, half(word))}\\\n${word.slice(half(word))}`,
  'ANSI-C quotes': (word) => `$'${hex(word)}'`,
  'octal escapes': (word) => `$'${octal(word)}'`,
  'locale quotes': (word) => `$"${word}"`,
  'no parameter inside': (word) => `${word.slice(0, half(word))}$@${word.slice(half(word))}`,
  'a default': (word) => `\${x:-${word}}`,
  'a default in quotes': (word) => `"\${x:-${word}}"`,
  'a substitution': (word) => `$(printf %s ${word})`,
  'a backtick': (word) => `\`printf %s ${word}\``,
  'printf with octal escapes': (word) => `$(printf '${octal(word)}')`,
  base64: (word) => `$(echo ${base64(word)} | base64 -d)`,
  rev: (word) => `$(rev <<< '${[...word].reverse().join('')}')`,
}

/** A command in other clothes, word by word or as a whole. */
export const dressCommand: Readonly<Record<string, (words: readonly string[]) => string>> = {
  ...Object.fromEntries(
    Object.entries(dressWord).flatMap(([name, dress]) => [
      [`its name by ${name}`, (words: readonly string[]) => [dress(words[0]!), ...words.slice(1)].join(' ')],
      [`each word by ${name}`, (words: readonly string[]) => words.map(dress).join(' ')],
    ]),
  ),
  'the field separator': (words) => words.join(`$\{IFS}`),
  'the field separator and a parameter': (words) => words.join('$IFS$9'),
  braces: (words) => (words.length > 1 ? `{${words.join(',')}}` : words[0]!),
  'a variable for the name': (words) => `a=${words[0]}; $a ${words.slice(1).join(' ')}`,
  'variables for all words': (words) =>
    `${words.map((word, at) => `v${at}=${word}`).join('; ')}; ${words.map((_, at) => `$v${at}`).join(' ')}`,
  'two halves': (words) =>
    `a=${words[0]!.slice(0, half(words[0]!))} b=${words[0]!.slice(half(words[0]!))}; $a$b ${words.slice(1).join(' ')}`,
  'one variable': (words) => `a='${words.join(' ')}'; $a`,
  'an array': (words) => `a=(${words.join(' ')}); "\${a[@]}"`,
  'positional parameters': (words) => `set -- ${words.join(' ')}; "$@"`,
  'a loop': (words) => `for a in ${words[0]}; do $a ${words.slice(1).join(' ')}; done`,
  'a function': (words) => `f() { ${words[0]} "$@"; }; f ${words.slice(1).join(' ')}`,
  'an alias': (words) => `alias q='${words[0]}'; q ${words.slice(1).join(' ')}`,
  'arguments of a script': (words) => `sh -c '"$@"' x ${words.join(' ')}`,
}

/** Any text in other clothes. */
export const dressText: Readonly<Record<string, (text: string) => string>> = {
  eval: (text) => `eval ${quote(text)}`,
  'a shell': (text) => `sh -c ${quote(text)}`,
  'a here-string': (text) => `bash <<< ${quote(text)}`,
  'a here-document': (text) => `bash <<'XYZ'\n${text}\nXYZ`,
  'a pipe': (text) => `printf '%s' ${quote(text)} | sh`,
  'base64 and a pipe': (text) => `echo ${base64(text)} | base64 -d | bash`,
  'base64 and eval': (text) => `eval "$(base64 -d <<< ${base64(text)})"`,
  'a variable and eval': (text) => `c=${quote(text)}; eval "$c"`,
  'a variable and a shell': (text) => `c=${quote(text)}; sh -c "$c"`,
  'a process substitution': (text) => `bash <(printf '%s' ${quote(text)})`,
  'a group that reads': (text) => `echo ${base64(text)} | base64 -d | (sh)`,
}
