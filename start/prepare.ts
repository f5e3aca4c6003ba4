import { readConfigOrExit } from '../config/settings.ts'
import { ensureGivenTokens } from '../db/access/tokens.ts'
import { connect } from '../db/connect.ts'
import { migrateToLatest, migrationTrouble } from '../migrations/migrate.ts'

/**
 * Prepares a production database once per deployment: applies migrations, then stores the tokens of
 * the environment. A failure ends the process with code 1.
 */
export async function prepareProduction(): Promise<void> {
  const config = readConfigOrExit(['DATABASE_URL'])
  const databaseUrl = config.DATABASE_URL as string
  try {
    const { applied } = await migrateToLatest(databaseUrl)
    console.log(applied.length > 0 ? `Applied ${applied.join(', ')}` : 'The schema is up to date')
  } catch (error) {
    const trouble = migrationTrouble(error, databaseUrl)
    if (!trouble) throw error
    console.error(`${trouble.problem}.\n${trouble.remedy}`)
    process.exit(1)
  }

  const db = connect(databaseUrl, { max: 1 })
  await ensureGivenTokens(db, {
    admin: config.BOOTSTRAP_ADMIN_TOKEN,
    ingest: config.BOOTSTRAP_INGEST_TOKEN,
    agent: config.AGENT_API_KEY,
  })
  await db.destroy()
  console.log('The tokens named in the environment are known')
}

if (import.meta.main) await prepareProduction()
