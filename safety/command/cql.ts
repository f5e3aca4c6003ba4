/** What is typed into cqlsh, read strictly: one statement that describes or selects, without a function but those that count. */

const describe =
  /^desc(?:ribe)?\s+(?:cluster|keyspaces|tables|types|functions|aggregates|schema|(?:keyspace|table|columnfamily|index|materialized\s+view|type)\s+\w+(?:\.\w+)?|\w+(?:\.\w+)?)$/i
const name = '\\w+(?:\\.\\w+)?'
const column = `(?:\\*|(?:count|min|max|avg|sum|token|ttl|writetime|totimestamp|dateof)\\s*\\(\\s*(?:\\*|\\w+|\\d+)\\s*\\)|\\w+)(?:\\s+as\\s+\\w+)?`
const condition = `(?:\\w+|token\\s*\\(\\s*\\w+\\s*\\))\\s*(?:=|<=?|>=?)\\s*(?:''|-?[\\w.:-]+)`
const select = new RegExp(
  `^select\\s+(?:distinct\\s+)?${column}(?:\\s*,\\s*${column})*\\s+from\\s+${name}` +
    `(?:\\s+where\\s+${condition}(?:\\s+and\\s+${condition})*)?(?:\\s+limit\\s+\\d+)?(?:\\s+allow\\s+filtering)?$`,
  'i',
)

export function inspectCql(text: string): string | null {
  const statement = text
    .trim()
    .replace(/;\s*$/, '')
    .replace(/'[^']*'/g, "''")
  if (/\bsystem_(?:auth|distributed_auth)\b/i.test(statement)) return 'it shows password hashes'
  if (/^(?:consistency|serial\s+consistency|show\s+(?:version|host))$/i.test(statement)) return null
  return describe.test(statement) || select.test(statement)
    ? null
    : 'it is not a SELECT or DESCRIBE that is known to only look'
}
