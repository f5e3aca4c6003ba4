import { readConfig } from '../config.ts'
import { connect } from '../db/connect.ts'
import { ensureGivenTokens } from '../db/tokens.ts'
import { migrateToLatest } from '../migrations/migrate.ts'

/** Prepares the database of a production once per deployment: migrations, then the tokens that its environment names. */
const config = readConfig(process.env, ['DATABASE_URL'])
const databaseUrl = config.DATABASE_URL as string
const { applied } = await migrateToLatest(databaseUrl)
console.log(applied.length > 0 ? `Applied ${applied.join(', ')}` : 'The schema is at its newest')

const db = connect(databaseUrl, { max: 1 })
await ensureGivenTokens(db, {
  admin: config.BOOTSTRAP_ADMIN_TOKEN,
  ingest: config.BOOTSTRAP_INGEST_TOKEN,
  agent: config.AGENT_API_KEY,
})
await db.destroy()
console.log('The tokens named in the environment are known')
