/**
 * awk that only looks: it may compute and print, but start no program, open no other file and write none. Read token by
 * token, since a bar or an angle bracket is a different thing inside a string or a regular expression.
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

/** `for (;;)`, or one that counts further than there are fields: `for (i = 0; i < 1e12; …)`. */
function isEndlessFor(rest: string): boolean {
  const [, condition] = /^\s*\([^;]*;([^;]*);/.exec(rest) ?? []
  return condition !== undefined && (!/[A-Za-z_]/.test(condition) || /\d{7}|\d[eE]\+?\d|^\s*\w+\s*$/.test(condition))
}

export function inspectAwk(program: string): string | null {
  let at = 0
  /** Whether a slash here begins a regular expression (nothing to divide stands before it), divides, or may do either. */
  let slash: 'begins' | 'divides' | 'either' = 'begins'
  let printing = false
  let depth = 0
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
    if (string || pattern || number) {
      slash = 'divides'
      continue
    }
    if (word) {
      if (Object.hasOwn(mayRun, token)) return mayRun[token]!
      if (token === 'for' && isEndlessFor(program.slice(at))) return 'for may never end'
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
  return null
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

/** Behind `[…]`: a bracket right behind the open one is a character, and `[:alpha:]` has its own end. Null: it stays open. */
function endOfBracket(expression: string, from: number): number | null {
  let at = from + 1
  if (expression[at] === '^') at += 1
  if (expression[at] === ']') at += 1
  while (at < expression.length && expression[at] !== ']') {
    // awk takes `\\]` for a character, sed for the end: what two of them read differently cannot be read.
    if (expression.startsWith('\\]', at)) return null
    const named = /^\[([:.=])/.exec(expression.slice(at, at + 2))
    const close = named ? expression.indexOf(`${named[1]}]`, at + 2) : -1
    at = close < 0 ? at + 1 : close + 2
  }
  return at < expression.length ? at + 1 : null
}
