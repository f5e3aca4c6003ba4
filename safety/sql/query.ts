import { type Cursor, SqlProblem } from './cursor.ts'
import { expression, expressions, ordered, table, windowAndClose } from './expression.ts'
import { checkJoined, checkRepeated, type FromTables, isSmall, listLinks, nameOf, newFrom } from './joins.ts'

const joinWords = ['NATURAL', 'LEFT', 'RIGHT', 'FULL', 'INNER', 'CROSS', 'OUTER', 'JOIN', 'STRAIGHT_JOIN']

/**
 * Reads a whole query: WITH, SELECT, VALUES or TABLE, set operations, ORDER BY, LIMIT. The grammar
 * may accept more than servers do, but passes no unknown token, so INTO and FOR UPDATE are never
 * accepted.
 */
export function query(c: Cursor): void {
  c.nested(() => {
    if (c.takeWord('WITH')) withTables(c)
    core(c)
    while (c.takeWord('UNION', 'INTERSECT', 'EXCEPT')) {
      c.takeWord('ALL', 'DISTINCT')
      core(c)
    }
    if (c.takeWord('ORDER')) {
      c.needWord('BY')
      ordered(c)
    }
    if (c.takeWord('LIMIT')) {
      expression(c)
      if (c.takeSign(',') || c.takeWord('OFFSET')) expression(c)
    }
  })
}

function withTables(c: Cursor): void {
  c.takeWord('RECURSIVE')
  do {
    const named = c.name()
    const at = c.place()
    if (c.takeSign('(')) c.namesAndClose()
    c.needWord('AS')
    if (!c.takeWords('NOT', 'MATERIALIZED')) c.takeWord('MATERIALIZED')
    c.needSign('(')
    const body = c.place()
    query(c)
    checkRepeated(named, c.since(at))
    if (isSmall(c.since(body))) c.small.add(named.toLowerCase())
    c.needSign(')')
  } while (c.takeSign(','))
}

function core(c: Cursor): void {
  if (c.takeSign('(')) {
    query(c)
    c.needSign(')')
  } else if (c.takeWord('VALUES')) {
    do {
      c.takeWord('ROW')
      c.needSign('(')
      expressions(c)
      c.needSign(')')
    } while (c.takeSign(','))
  } else if (c.takeWord('TABLE')) table(c)
  else select(c)
}

function select(c: Cursor): void {
  c.needWord('SELECT')
  while (c.takeWord('DISTINCT', 'ALL', 'DISTINCTROW', 'STRAIGHT_JOIN', 'SQL_NO_CACHE'));
  do item(c)
  while (c.takeSign(','))
  const from = newFrom()
  if (c.takeWord('FROM')) tables(c, from)
  if (c.takeWord('WHERE')) condition(c, from)
  checkJoined(from)
  if (c.takeWord('GROUP')) {
    c.needWord('BY')
    ordered(c)
    if (c.takeWord('WITH')) c.needWord('ROLLUP')
  }
  if (c.takeWord('HAVING')) expression(c)
  if (!c.takeWord('WINDOW')) return
  do {
    c.name()
    c.needWord('AS')
    c.needSign('(')
    windowAndClose(c)
  } while (c.takeSign(','))
}

function item(c: Cursor): void {
  if (c.takeSign('*')) return
  let dots = 0
  while (c.isName(dots) && c.isSign('.', dots + 1)) dots += 2
  if (dots > 0 && c.isSign('*', dots)) {
    for (let i = 0; i <= dots; i++) c.take()
    return
  }
  expression(c)
  alias(c)
}

function alias(c: Cursor): void {
  if (c.takeWord('AS')) {
    if (!c.takeKind('string')) c.name()
  } else if (c.isName()) c.take()
  else c.takeKind('string')
}

function tables(c: Cursor, from: FromTables): void {
  tableFactor(c, from)
  for (;;) {
    if (c.takeSign(',')) tableFactor(c, from)
    else if (c.isWord(...joinWords)) {
      while (c.takeWord(...joinWords));
      tableFactor(c, from)
      if (c.takeWord('ON')) condition(c, from)
      else if (c.takeWord('USING')) {
        c.needSign('(')
        c.namesAndClose()
        from.links.push([null, from.tables.at(-1) ?? null])
      }
    } else return
  }
}

function condition(c: Cursor, from: FromTables): void {
  const at = c.place()
  expression(c)
  from.links.push(...listLinks(c.since(at)))
}

function tableFactor(c: Cursor, from: FromTables): void {
  c.nested(() => {
    const at = c.place()
    c.takeWord('LATERAL')
    let counts = true
    if (c.takeSign('(')) {
      if (c.isWord('SELECT', 'WITH', 'VALUES', 'TABLE')) {
        query(c)
        counts = !isSmall(c.since(at))
      } else {
        tables(c, from)
        counts = false
      }
      c.needSign(')')
    } else if (c.isName() && c.isSign('(', 1)) {
      const called = c.take().text.toLowerCase()
      if (!c.words.tableFunctions.has(called)) throw new SqlProblem(`function ${called}`)
      c.needSign('(')
      if (called === 'generate_series') checkSeries(c)
      if (!c.isSign(')')) expressions(c)
      c.needSign(')')
      counts = false
    } else {
      table(c)
      counts = !(c.since(at).length === 1 && c.small.has(nameOf(c.since(at))))
    }
    if (!c.isWord('INDEXED')) alias(c)
    if (counts) from.tables.push(nameOf(c.since(at)))
    if (c.takeSign('(')) c.namesAndClose()
    indexHints(c)
  })
}

/** Most rows that a read may make. */
const maxRows = 100_000

/** Checks `generate_series(1, 10)`, whose bounds must be literal. */
function checkSeries(c: Cursor): void {
  const [from, comma, to, end] = [c.peek(), c.peek(1), c.peek(2), c.peek(3)]
  const rows = Number(to.text) - Number(from.text)
  if (comma.text !== ',' || !/^[,)]$/.test(end.text) || !(Math.abs(rows) <= maxRows))
    throw new SqlProblem('a series without plain bounds')
}

function indexHints(c: Cursor): void {
  if (c.takeWords('INDEXED', 'BY')) c.name()
  else c.takeWords('NOT', 'INDEXED')
  while (c.takeWord('USE', 'FORCE', 'IGNORE')) {
    c.needWord('INDEX', 'KEY')
    c.needSign('(')
    do {
      if (!c.takeWord('PRIMARY')) c.name()
    } while (c.takeSign(','))
    c.needSign(')')
  }
}
