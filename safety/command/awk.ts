import { type AwkToken, findGrowth, maxLoops } from './awk-growth.ts'

/**
 * awk that only looks: it computes and prints, starts no program, opens no other file and writes
 * none. Reads token by token, since a bar or an angle bracket differs inside a string or regular
 * expression.
 */

const mayRun: Readonly<Record<string, string>> = {
  system: 'system() runs a program',
  getline: 'getline may read a file or a program',
  close: 'close() ends a pipe',
  fflush: 'fflush() may write',
  ENVIRON: 'ENVIRON holds the environment',
  PROCINFO: 'PROCINFO changes how input is read',
  ARGV: 'ARGV changes which files are read',
  ARGC: 'ARGC changes which files are read',
  SYMTAB: 'SYMTAB holds all of these under other names',
  FUNCTAB: 'FUNCTAB holds functions under other names',
  while: 'while may never end',
  do: 'do may never end',
  function: 'a function may call itself for ever',
  func: 'a function may call itself for ever',
}

/** Functions of all awks that compute. */
const computing =
  /^(?:length|substr|index|split|patsplit|match|sub|gsub|gensub|sprintf|tolower|toupper|sin|cos|atan2|exp|log|sqrt|int|rand|srand|strftime|systime|mktime|gmtime|localtime|strtonum|asorti?|and|or|xor|lshift|rshift|compl|typeof|isarray|if|for|in|print|printf|return|exit|delete|switch|case)$/

/** Further than a loop counts by a number that stands there. */
const maxCount = 10_000

/**
 * A loop of three parts that does not count its variable towards an end: `for (i = 0; i >= 0;
 * i++)`, one beyond the fields, one whose body moves the variable or its end.
 */
function isEndlessFor(rest: string): boolean {
  if (!/^\s*\([^;()]*(?:\([^()]*\)[^;()]*)*;/.test(rest)) return makesElements(rest)
  const [header, name = '', sign = '', end = '', step = ''] =
    /^\s*\(\s*(\w+)\s*=[^;]*;\s*\1\s*([<>]=?)\s*([^;<>=&|?]+?)\s*(?:&&[^;]*)?;\s*([^;]*?)\s*\)/.exec(rest) ?? []
  if (header === undefined) return true
  const counts = sign.startsWith('<')
    ? `^(?:${name}\\+\\+|\\+\\+${name}|${name}\\s*\\+=\\s*[1-9]\\d*)$`
    : `^(?:${name}--|--${name}|${name}\\s*-=\\s*[1-9]\\d*)$`
  if (!new RegExp(counts).test(step)) return true
  if ((end.match(/\d[\d.eE+]*/g) ?? []).some((number) => Number(number) > maxCount || Number.isNaN(Number(number))))
    return true
  const body = bodyOf(rest.slice(header.length))
  const moved = [name, ...(end.match(/[A-Za-z_]\w*/g) ?? [])].some((each) =>
    new RegExp(`(?<![\\w.$])${each}\\s*(?:=(?!=)|\\+\\+|--|[-+*/%^]=)|(?:\\+\\+|--)\\s*${each}(?!\\w)`).test(body),
  )
  // A field behind the last one moves the end.
  if (/NF/.test(end) && /\$\s*\([^)]*\)\s*(?:=(?!=)|\+\+|[-+*/]=)/.test(body)) return true
  // What a replacement doubles in each round is as long as two to the power of them.
  return (
    moved ||
    /\b(?:g|gen)?sub\s*\((?!\s*(?:"(?:[^"\\]|\\.)*"|\/(?:[^/\\]|\\.)*\/)\s*,\s*"(?:\\?[^"&]|&)?"\s*[,)])/.test(body)
  )
}

/** `for (k in a) a[k k]`: of each element another one, and in the next line of both. */
function makesElements(rest: string): boolean {
  const [header = '', name = '', list = ''] = /^\s*\(\s*(\w+)\s+in\s+(\w+)\s*\)/.exec(rest) ?? []
  const other = new RegExp(`(?<!\\w)${list}\\s*\\[(?!\\s*${name}\\s*\\])[^\\]]*\\]\\s*(?:=(?!=)|\\+\\+|[-+*/]=)`)
  return header !== '' && other.test(bodyOf(rest.slice(header.length)))
}

/** What a loop does in each round: a block, or a statement. */
function bodyOf(rest: string): string {
  let depth = 0
  for (let at = 0; at < rest.length; at += 1) {
    if (/[({[]/.test(rest[at]!)) depth += 1
    if (/[)}\]]/.test(rest[at]!)) depth -= 1
    if (depth < 0) return rest.slice(0, at)
    if (depth === 0 && (rest[at] === '}' || (rest[at] === ';' && !/^\s*\{/.test(rest)))) return rest.slice(0, at)
  }
  return rest
}

/** `%2000000000d`, and a width given apart or put together: more characters than anybody reads. */
const wideFormat = /%[-+ #0']*(?:\d{5}|\d*\.\d{5}|\d*\.?\*)/
const openFormat = /(?<!%)(?:%%)*%[-+ #0']*\d*\.?\d*"$/
/** A per cent sign by its number. */
const escapedSign = /\\(?:0?45|x25)/g
/** Formats of numbers that are printed without one. */
const ownFormats = /(?<![\w$])(?:OFMT|CONVFMT)(?!\w)/

/** A format that is no text alone. */
const buildsFormat = /\bs?printf\s*\(?\s*(?:[^"\s(]|"(?:[^"\\]|\\.)*"\s*[^,;)}"\s])/

export function inspectAwk(program: string): string | null {
  if ((program.match(/\bfor\b/g)?.length ?? 0) > maxLoops) return 'more loops than anybody reads'
  let at = 0
  /**
   * Whether a slash begins a regular expression (nothing to divide before it), divides, or may do
   * either.
   */
  let slash: 'begins' | 'divides' | 'either' = 'begins'
  let printing = false
  let depth = 0
  const tokens: AwkToken[] = []
  while (at < program.length) {
    const rest: string = program.slice(at)
    const blank = /^(?:[ \t]+|\\\n)/.exec(rest)
    if (blank) {
      at += blank[0].length
      continue
    }
    if (rest[0] === '#') {
      const end = rest.indexOf('\n')
      at += end < 0 ? rest.length : end
      continue
    }
    const string = /^"(?:[^"\\\n]|\\[\s\S])*"/.exec(rest)
    if (rest[0] === '"' && !string) return 'a string does not end'
    if (rest[0] === '/' && slash === 'either') return 'a slash that may divide or begin a regular expression'
    const pattern: RegExpExecArray | null = slash === 'begins' ? /^\/(?:[^/\\\n]|\\.)*\//.exec(rest) : null
    if (slash === 'begins' && rest[0] === '/' && !pattern) return 'a regular expression does not end'
    // One awk ends the expression at the slash of `[/]`, another does not.
    if (pattern && hasOpenBracket(pattern[0])) return 'a slash inside brackets'
    const word = /^[A-Za-z_]\w*/.exec(rest)
    const number = /^(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/.exec(rest)
    const token: string =
      (string ?? pattern ?? word ?? number)?.[0] ?? /^(?:\|\||&&|\|&|>>|[<>=!]=)/.exec(rest)?.[0] ?? rest[0]!
    at += token.length
    const kind = string ? 'text' : pattern ? 'pattern' : word ? 'word' : number ? 'number' : 'sign'
    tokens.push({ text: token, kind })
    const why = string ? findFormatProblem(token, program) : word ? findWordProblem(token, program.slice(at)) : null
    if (why) return why
    if (string || pattern || number) {
      slash = 'divides'
      continue
    }
    if (word) {
      if (token === 'print' || token === 'printf') {
        printing = true
        depth = 0
      }
      slash = /^(?:print|printf|return|in|else|do|exit|case)$/.test(token) ? 'begins' : 'divides'
      continue
    }
    if (token === '@') return '@ loads code or calls what a variable names'
    if (token === '|' || token === '|&') return `${token} opens a pipe to a program`
    if (token === '>>') return '>> writes a file'
    // A comparison in a list of what to print needs brackets; bare it is a redirection.
    if (token === '>' && printing && depth === 0) return '> writes a file'
    if (token === '(' || token === '[') depth += 1
    if (token === ')' || token === ']') depth -= 1
    // A line break ends nothing here: behind a comma or an operator the statement goes on.
    if (token === ';' || token === '}' || token === '{') printing = false
    slash = token === ']' ? 'divides' : /^(?:[)$]|\+|-)$/.test(token) ? 'either' : 'begins'
    if (!/^[\x20-\x7e\n]+$/.test(token)) return `${token} is not awk`
  }
  return findGrowth(tokens)
}

function findFormatProblem(token: string, program: string): string | null {
  const format = token.replace(escapedSign, '%')
  if (!format.includes('%')) return null
  if (wideFormat.test(format)) return `${token} prints more than ${maxCount} characters`
  const isBuilt = openFormat.test(format) && (buildsFormat.test(program) || ownFormats.test(program))
  return isBuilt ? 'a format that is put together' : null
}

function findWordProblem(token: string, rest: string): string | null {
  if (Object.hasOwn(mayRun, token)) return mayRun[token]!
  if (token === 'printf' && /^[\s(]*sprintf/.test(rest)) return 'a format that is put together'
  if (rest[0] === '(' && !computing.test(token)) return `${token}() is not known to compute`
  return token === 'for' && isEndlessFor(rest) ? 'for may never end' : null
}

/** True when a bracket opens and does not close: what looked like the end was inside it. */
export function hasOpenBracket(expression: string): boolean {
  let at = 0
  while (at < expression.length) {
    if (expression[at] === '\\') at += 2
    else if (expression[at] !== '[') at += 1
    else {
      const end = endOfBracket(expression, at)
      if (end === null) return true
      at = end
    }
  }
  return false
}

/**
 * Behind `[…]`: a bracket right after the open one is a character, and `[:alpha:]` ends itself.
 * Null: it stays open.
 */
function endOfBracket(expression: string, from: number): number | null {
  let at = from + 1
  if (expression[at] === '^') at += 1
  if (expression[at] === ']') at += 1
  while (at < expression.length && expression[at] !== ']') {
    // awk takes `\\]` for a character, sed for the end: what they read differently cannot be read.
    if (expression.startsWith('\\]', at)) return null
    const named = /^\[([:.=])/.exec(expression.slice(at, at + 2))
    const close = named ? expression.indexOf(`${named[1]}]`, at + 2) : -1
    at = close < 0 ? at + 1 : close + 2
  }
  return at < expression.length ? at + 1 : null
}
