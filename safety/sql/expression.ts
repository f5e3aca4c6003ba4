import { type Cursor, SqlProblem } from './cursor.ts'
import { checkWidth } from './joins.ts'

const binarySigns = new Set('+ - * / % = == <=> <> != < <= > >= || && | & << >> ^ -> ->>'.split(' '))
const unarySigns = new Set(['-', '+', '~', '!'])
const literalPrefixes = new Set(['DATE', 'TIME', 'TIMESTAMP', 'X', 'B', 'N'])

/**
 * Reads an expression without precedence: each operand and operator must be known. A function must
 * be on the dialect's list, also if it is quoted, spaced or in another case.
 */
export function expression(c: Cursor): void {
  c.nested(() => {
    do {
      while (c.takeWord('NOT', 'BINARY') || takeSignOf(c, unarySigns));
      operand(c)
      while (postfix(c));
    } while (operator(c))
  })
}

export function expressions(c: Cursor): void {
  do expression(c)
  while (c.takeSign(','))
}

export function ordered(c: Cursor): void {
  do {
    expression(c)
    c.takeWord('ASC', 'DESC')
    if (c.takeWord('NULLS')) c.needWord('FIRST', 'LAST')
  } while (c.takeSign(','))
}

function takeSignOf(c: Cursor, signs: ReadonlySet<string>): boolean {
  return c.peek().kind === 'sign' && signs.has(c.peek().text) && c.take() !== undefined
}

function operator(c: Cursor): boolean {
  if (takeSignOf(c, binarySigns)) {
    if (c.takeWord('ALL', 'ANY', 'SOME') && !c.isSign('(')) c.fail()
    return true
  }
  if (c.takeWord('IS')) {
    c.takeWord('NOT')
    if (c.takeWord('DISTINCT')) c.needWord('FROM')
    return true
  }
  const negated = c.isWord('NOT') && c.words.operators.has(c.peek(1).word)
  if (negated) c.take()
  return c.peek().kind === 'word' && c.words.operators.has(c.peek().word) && c.take() !== undefined
}

function postfix(c: Cursor): boolean {
  if (c.takeWord('COLLATE')) {
    if (!c.takeWord('BINARY')) c.name()
    return true
  }
  if (c.takeWord('ISNULL', 'NOTNULL') || c.takeWords('NOT', 'NULL')) return true
  if (!c.takeWords('NOT', 'IN') && !c.takeWord('IN')) return false
  if (c.takeSign('(')) {
    if (!c.isSign(')')) queryOrExpressions(c)
    c.needSign(')')
  } else if (c.words.inTable && !c.isSign('(', 1)) table(c)
  else c.fail()
  return true
}

function queryOrExpressions(c: Cursor): void {
  if (c.isWord('SELECT', 'WITH', 'VALUES', 'TABLE')) c.readQuery(c)
  else expressions(c)
}

function operand(c: Cursor): void {
  const token = c.peek()
  if (c.takeKind('number')) return
  if (c.takeKind('string')) {
    while (c.takeKind('string'));
  } else if (c.takeSign('(')) {
    queryOrExpressions(c)
    c.needSign(')')
  } else if (c.takeSign('@@')) {
    do c.name()
    while (c.takeSign('.'))
  } else if (c.takeWord('CASE')) caseOf(c)
  else if (c.takeWord('EXISTS')) {
    c.needSign('(')
    c.readQuery(c)
    c.needSign(')')
  } else if (c.takeWord('INTERVAL')) {
    expression(c)
    if (!c.words.intervalUnits.has(c.take().word)) throw new SqlProblem(`token ${token.text}`)
  } else if ((token.kind === 'word' || token.kind === 'name') && c.isSign('(', 1)) call(c)
  else if (token.kind === 'word' && c.words.constants.has(token.word)) c.take()
  else if (literalPrefixes.has(token.word) && c.peek(1).kind === 'string') {
    c.take()
    c.take()
  } else column(c)
}

function column(c: Cursor): void {
  let path = c.name()
  while (c.takeSign('.')) path += `.${c.name()}`
  if (c.isSign('(')) throw new SqlProblem(`function ${path}`)
}

function caseOf(c: Cursor): void {
  if (!c.isWord('WHEN')) expression(c)
  do {
    c.needWord('WHEN')
    expression(c)
    c.needWord('THEN')
    expression(c)
  } while (c.isWord('WHEN'))
  if (c.takeWord('ELSE')) expression(c)
  c.needWord('END')
}

/** Reads `name( … )` with FILTER or OVER. */
function call(c: Cursor): void {
  const name = c.take().text.toLowerCase()
  if (!c.words.functions.has(name)) throw new SqlProblem(`function ${name}`)
  c.needSign('(')
  if (!c.takeSign('*') && !c.isSign(')')) callArguments(c, name)
  c.needSign(')')
  if (c.takeWord('FILTER')) {
    c.needSign('(')
    c.needWord('WHERE')
    expression(c)
    c.needSign(')')
  }
  if (!c.takeWord('OVER')) return
  if (c.takeSign('(')) windowAndClose(c)
  else c.name()
}

function callArguments(c: Cursor, name: string): void {
  c.takeWord('DISTINCT', 'ALL')
  c.takeWord('LEADING', 'TRAILING', 'BOTH')
  // Allows TRIM(BOTH FROM x), which has nothing before FROM.
  const at = c.place()
  if (!c.isWord('FROM')) expressions(c)
  checkWidth(name, c.since(at))
  if (name === 'cast') {
    c.needWord('AS')
    type(c)
  }
  if (c.takeWord('USING')) c.name()
  if (c.takeWord('FROM')) expression(c)
  if (c.takeWord('FOR')) expression(c)
  if (c.takeWord('ORDER')) {
    c.needWord('BY')
    ordered(c)
  }
  if (c.takeWord('SEPARATOR')) c.needKind('string')
}

function type(c: Cursor): void {
  if (!c.words.types.has(c.peek().word)) c.fail()
  while (c.words.types.has(c.peek().word)) c.take()
  if (!c.takeSign('(')) return
  do c.needKind('number')
  while (c.takeSign(','))
  c.needSign(')')
}

/** Reads the inside of a window and its closing parenthesis. */
export function windowAndClose(c: Cursor): void {
  if (c.isName() && !c.isWord('PARTITION', 'ROWS', 'RANGE', 'GROUPS')) c.name()
  if (c.takeWord('PARTITION')) {
    c.needWord('BY')
    expressions(c)
  }
  if (c.takeWord('ORDER')) {
    c.needWord('BY')
    ordered(c)
  }
  if (c.takeWord('ROWS', 'RANGE', 'GROUPS')) {
    if (c.takeWord('BETWEEN')) {
      bound(c)
      c.needWord('AND')
    }
    bound(c)
  }
  c.needSign(')')
}

function bound(c: Cursor): void {
  if (c.takeWords('CURRENT', 'ROW')) return
  if (!c.takeWord('UNBOUNDED')) c.needKind('number')
  c.needWord('PRECEDING', 'FOLLOWING')
}

/** Reads `name` or `schema.name`, and checks it against the tables that may not be read. */
export function table(c: Cursor): void {
  if (c.takeWord('DUAL')) return
  const parts = [c.name()]
  while (c.takeSign('.')) parts.push(c.name())
  if (parts.length > 3) c.fail()
  c.words.checkTable(parts.map((part) => part.toLowerCase()))
}
