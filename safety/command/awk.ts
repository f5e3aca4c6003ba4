import { type AwkToken, findGrowth, maxLoops } from './awk-growth.ts'

/**
 * Proves that an awk program only reads: it computes and prints, starts no program, opens no other
 * file and writes none. Reads token by token, because a bar or an angle bracket means something
 * else inside a string or regular expression.
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
  SYMTAB: 'SYMTAB holds all variables under other names',
  FUNCTAB: 'FUNCTAB holds functions under other names',
  while: 'while may never end',
  do: 'do may never end',
  function: 'a function may call itself for ever',
  func: 'a function may call itself for ever',
}

/** Functions of all awks that only compute. */
const computing =
  /^(?:length|substr|index|split|patsplit|match|sub|gsub|gensub|sprintf|tolower|toupper|sin|cos|atan2|exp|log|sqrt|int|rand|srand|strftime|systime|mktime|gmtime|localtime|strtonum|asorti?|and|or|xor|lshift|rshift|compl|typeof|isarray|if|for|in|print|printf|return|exit|delete|switch|case)$/

/** The largest number to which a loop may count. */
const maxCount = 10_000

/**
 * Whether a loop of three parts is endless, such as `for (i = 0; i >= 0; i++)`, counts too far, or
 * has a body that changes the variable or the limit.
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
  // Finds an assignment to a field after the last field, which raises the limit NF.
  if (/NF/.test(end) && /\$\s*\([^)]*\)\s*(?:=(?!=)|\+\+|[-+*/]=)/.test(body)) return true
  // Finds a replacement that doubles the text in each round, which grows as a power of two.
  return (
    moved ||
    /\b(?:g|gen)?sub\s*\((?!\s*(?:"(?:[^"\\]|\\.)*"|\/(?:[^/\\]|\\.)*\/)\s*,\s*"(?:\\?[^"&]|&)?"\s*[,)])/.test(body)
  )
}

/** Detects `for (k in a) a[k k]`, which adds an element for each element. */
function makesElements(rest: string): boolean {
  const [header = '', name = '', list = ''] = /^\s*\(\s*(\w+)\s+in\s+(\w+)\s*\)/.exec(rest) ?? []
  const other = new RegExp(`(?<!\\w)${list}\\s*\\[(?!\\s*${name}\\s*\\])[^\\]]*\\]\\s*(?:=(?!=)|\\+\\+|[-+*/]=)`)
  return header !== '' && other.test(bodyOf(rest.slice(header.length)))
}

/** Returns the body of a loop: a block, or a statement. */
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

/** Matches widths that print huge texts: `%2000000000d`, and a computed width. */
const wideFormat = /%[-+ #0']*(?:\d{5}|\d*\.\d{5}|\d*\.?\*)/
const openFormat = /(?<!%)(?:%%)*%[-+ #0']*\d*\.?\d*"$/
/** Matches a per cent sign that is written as a number. */
const escapedSign = /\\(?:0?45|x25)/g
/** Matches the variables with the default formats of printed numbers. */
const ownFormats = /(?<![\w$])(?:OFMT|CONVFMT)(?!\w)/

/** Matches a format that is not a plain text. */
const buildsFormat = /\bs?printf\s*\(?\s*(?:[^"\s(]|"(?:[^"\\]|\\.)*"\s*[^,;)}"\s])/

export function inspectAwk(program: string): string | null {
  if ((program.match(/\bfor\b/g)?.length ?? 0) > maxLoops) return 'too many loops'
  let at = 0
  /**
   * The reading of a slash: it begins a regular expression (there is nothing before it to divide),
   * divides, or may do either.
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
    if (rest[0] === '/' && slash === 'either') return 'a slash may be a division or begin a regular expression'
    const pattern: RegExpExecArray | null = slash === 'begins' ? /^\/(?:[^/\\\n]|\\.)*\//.exec(rest) : null
    if (slash === 'begins' && rest[0] === '/' && !pattern) return 'a regular expression does not end'
    // Refuses a slash in `[/]`, because awks disagree whether it ends the expression.
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
    // Refuses `>` in a print list: a comparison there needs parentheses, so it is a redirection.
    if (token === '>' && printing && depth === 0) return '> writes a file'
    if (token === '(' || token === '[') depth += 1
    if (token === ')' || token === ']') depth -= 1
    // Ends the statement here, but not at a line break after a comma or an operator.
    if (token === ';' || token === '}' || token === '{') printing = false
    slash = token === ']' ? 'divides' : /^(?:[)$]|\+|-)$/.test(token) ? 'either' : 'begins'
    if (!/^[\x20-\x7e\n]+$/.test(token)) return `${token} is not awk syntax`
  }
  return findGrowth(tokens)
}

function findFormatProblem(token: string, program: string): string | null {
  const format = token.replace(escapedSign, '%')
  if (!format.includes('%')) return null
  if (wideFormat.test(format)) return `${token} prints more than ${maxCount} characters`
  const isBuilt = openFormat.test(format) && (buildsFormat.test(program) || ownFormats.test(program))
  return isBuilt ? 'a format is computed' : null
}

function findWordProblem(token: string, rest: string): string | null {
  if (Object.hasOwn(mayRun, token)) return mayRun[token]!
  if (token === 'printf' && /^[\s(]*sprintf/.test(rest)) return 'a format is computed'
  if (rest[0] === '(' && !computing.test(token)) return `${token}() is not a known function`
  return token === 'for' && isEndlessFor(rest) ? 'for may never end' : null
}

/** Whether a bracket opens and does not close, so that the end of the expression was inside it. */
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
 * Finds the end of `[…]`. A bracket directly after the opening one is a character, and `[:alpha:]`
 * has its own end. Null if the bracket stays open.
 */
function endOfBracket(expression: string, from: number): number | null {
  let at = from + 1
  if (expression[at] === '^') at += 1
  if (expression[at] === ']') at += 1
  while (at < expression.length && expression[at] !== ']') {
    // Refuses `\\]`, which awk reads as a character and sed as the end.
    if (expression.startsWith('\\]', at)) return null
    const named = /^\[([:.=])/.exec(expression.slice(at, at + 2))
    const close = named ? expression.indexOf(`${named[1]}]`, at + 2) : -1
    at = close < 0 ? at + 1 : close + 2
  }
  return at < expression.length ? at + 1 : null
}
