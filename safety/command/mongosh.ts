/**
 * JavaScript for mongosh, read strictly: a chain of methods that are named here, with literals for arguments. Nothing else of the
 * language is taken: no function, no variable, no name that is put together.
 */

const topics = 'dbs|databases|collections|tables|profile|log(?:s| global)?'
/** Questions to the server about itself, with literals or nothing between the parentheses. */
const asks: Readonly<Record<string, string>> = {
  rs: 'conf|config|hello|isMaster|printReplicationInfo|printSecondaryReplicationInfo|printSlaveReplicationInfo|status',
  sh: 'status|getBalancerState|isBalancerRunning',
  db: `currentOp|getCollectionInfos|getCollectionNames|getName|getProfilingStatus|getReplicationInfo|hello|hostInfo|isMaster|printCollectionStats|
       printReplicationInfo|printSecondaryReplicationInfo|serverBuildInfo|serverStatus|stats|version`.replace(
    /\s+/g,
    '',
  ),
}
const commands =
  'ping|hello|isMaster|buildInfo|collStats|connPoolStats|currentOp|dbStats|hostInfo|listDatabases|listCollections|replSetGetStatus|replSetGetConfig|serverStatus|top|getShardMap|listShards|balancerStatus|validateDBMetadata'
const ofCollection =
  'count|countDocuments|dataSize|distinct|estimatedDocumentCount|getIndexes|getShardDistribution|isCapped|latencyStats|stats|storageSize|totalIndexSize|totalSize'
const operators =
  /^\$(?:eq|ne|gt|gte|lt|lte|in|nin|and|or|nor|not|exists|type|size|all|elemMatch|mod|regex|options|date|oid|numberLong)$/

const literal = `(?:[^()"'\`\\\\/;=]|"[^"\\\\]*"|'[^'\\\\]*')*`
const chains = [
  new RegExp(`^rs\\.(?:${asks.rs})\\(\\)`),
  new RegExp(`^sh\\.(?:${asks.sh})\\(\\)`),
  new RegExp(`^db\\.(?:${asks.db})\\((${literal})\\)`),
  new RegExp(
    `^db\\.(?:runCommand|adminCommand)\\((\\{\\s*["']?(?:${commands})["']?\\s*:\\s*(?:1|true|"\\w+"|'\\w+')\\s*\\})\\)`,
  ),
  new RegExp(`^db\\.(?:runCommand|adminCommand)\\(["'](?:${commands})["']\\)`),
  /^db\.getMongo\(\)\.getDBNames\(\)/,
  new RegExp(`^db\\.(?!system\\b|_)[A-Za-z]\\w*\\.(?:${ofCollection})\\((${literal})\\)`),
  new RegExp(
    `^db\\.(?!system\\b|_)[A-Za-z]\\w*\\.(?:find|findOne)\\((${literal})\\)(?:\\.sort\\((${literal})\\))?(?:\\.limit\\(\\d{1,4}\\)|\\.count\\(\\)|\\.explain\\((?:["'](?:executionStats|queryPlanner)["'])?\\))(?:\\.toArray\\(\\)|\\.pretty\\(\\))?`,
  ),
]
/** What only picks from an answer: properties, and an arrow whose body is properties, strings and sums. */
const picks =
  /^(?:\.(?!constructor\b|__|prototype\b)[A-Za-z]\w*(?![\w(])|\[\d+\]|\.(?:map|filter)\(\(?([a-z]\w*)\)? => (?:(?:\1(?:\.(?!constructor\b|__|prototype\b)[A-Za-z]\w*)+|"[^"\\]*"|'[^'\\]*'|\d+)(?:\s*(?:\+|===?|!==?|[<>]=?)\s*|(?=\))))+\)|\.(?:pretty|toArray)\(\))*$/
const prints = /^(?:JSON\.stringify|EJSON\.stringify|printjson|print|tojson)\((.*?)(?:,\s*null,\s*\d)?\)$/s

export function inspectMongosh(text: string): string | null {
  if (!/^[\x20-\x7e\n]*$/.test(text) || text.length > 2000) return 'it is too long or has odd characters'
  const statements = text
    .trim()
    .replace(/;\s*$/, '')
    .split(/;\s*|\n+/)
  for (const statement of statements) {
    const why = inspectStatement(statement.trim(), 0)
    if (why) return why
  }
  return null
}

function inspectStatement(text: string, depth: number): string | null {
  if (depth > 2) return 'it prints what it prints'
  if (new RegExp(`^show (?:${topics})$`).test(text) || /^-?\d+$/.test(text)) return null
  const printed = prints.exec(text)
  if (printed) return inspectStatement(printed[1]!.trim(), depth + 1)
  for (const chain of chains) {
    const found = chain.exec(text)
    if (!found) continue
    const odd = found.slice(1).find((given) => given !== undefined && !isLiteral(given))
    if (odd !== undefined) return `${odd} is more than a plain document`
    if (picks.test(text.slice(found[0].length))) return null
  }
  return 'it is not a question that is known to only look'
}

/** Braces, brackets, strings, numbers and plain keys; no operator that runs code. */
function isLiteral(text: string): boolean {
  const bare = text.replace(/"[^"\\]*"|'[^'\\]*'/g, (string) => (string[1] === '$' ? string.slice(1, -1) : '0'))
  if (!/^[\w\s{}[\]:,.$-]*$/.test(bare)) return false
  const words = bare.match(/\$?[A-Za-z_]\w*/g) ?? []
  return words.every((word) =>
    word.startsWith('$') ? operators.test(word) : !/^(?:function|new|this|async|await)$/.test(word),
  )
}
