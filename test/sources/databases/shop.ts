import { loadSql } from '../../../safety/sql/inspect.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { planRead, type probeSource, readSource } from '../../../sources/kinds.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

type Shop = SiteDatabase & {
  source(options: object, credential?: string): Parameters<typeof probeSource>[0]
  states: ReturnType<typeof newSourceStates>
  /** The answer of `query_database` as a model gets it, or why there is none. */
  query(sql: string, from?: Parameters<typeof probeSource>[0]): Promise<string>
  /** The same with all that is kept of it. */
  queryWhole(sql: string): Promise<string>
}

/** A database of a site where statements are allowed, whose tables everybody may read. */
export async function openShop(tables: string): Promise<Shop> {
  await loadSql()
  const files = temporaryDirectory()
  const states = newSourceStates(() => undefined, files.path)
  const shop = await siteDatabase(files.path)
  await shop.run(tables)
  await shop.run('grant select on all tables in schema public to public; analyze')
  const source: Shop['source'] = (options, credential = shop.credential) =>
    ({
      name: 'shop-db',
      kind: 'postgresql',
      url: shop.url,
      credential,
      writeCredential: null,
      scheme: null,
      headers: {},
      caFile: null,
      certFile: null,
      keyFile: null,
      options,
      timeoutSeconds: 5,
      createdBy: 'anna',
      createdAt: '',
    }) as Parameters<typeof probeSource>[0]
  const read = async (sql: string, from: ReturnType<Shop['source']>): Promise<[string, string]> => {
    const planned = planRead([from], 'query_database', { sql })
    if (!planned.ok) return [planned.reason, '']
    return await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null }).then(
      ({ whole, summary }) => [JSON.stringify(summary), whole],
      (error: Error) => [error.message, ''],
    )
  }
  return {
    ...shop,
    source,
    states,
    query: async (sql, from = source({ query: 'allowed' })) => (await read(sql, from))[0],
    queryWhole: async (sql) => (await read(sql, source({ query: 'allowed' }))).join('\n'),
    async drop() {
      await shop.drop()
      files.remove()
    },
  }
}
