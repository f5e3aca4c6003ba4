import type { Db } from '../db/connect.ts'
import { noteUnreadablePolicy, takeSitePolicy } from '../db/site-policies.ts'
import { sha256 } from '../domain/digest.ts'
import type { FoundPolicy } from '../knowledge/policy-file.ts'
import { readSitePolicy } from '../safety/site/read.ts'
import { toolFacts } from '../tools/registry.ts'
import type { ApiDeps } from './deps.ts'

/** Takes up what was found beside the runbooks. Without a file nothing changes: the last good policy stays in force. */
export async function takeUpSitePolicy({
  db,
  knowledge,
  log,
}: Pick<ApiDeps, 'db' | 'knowledge' | 'log'>): Promise<void> {
  try {
    await takeFound(db, knowledge.policies())
  } catch (error) {
    log.error({ err: error }, 'the policy of the site was not taken up: the last good one stays in force')
  }
}

async function takeFound(db: Db, found: readonly FoundPolicy[]): Promise<void> {
  const [file, second] = found
  if (!file) return
  if (second) {
    const why = `there are two policies: ${file.path} and ${second.path}`
    return await noteUnreadablePolicy(db, null, [{ line: 1, why, remedy: 'keep one of them' }])
  }
  if ('problem' in file) return await noteUnreadablePolicy(db, null, [{ line: 1, ...file.problem }])
  const read = readSitePolicy(file.bytes, toolFacts, file.commit)
  if (!read.ok) return await noteUnreadablePolicy(db, sha256(file.bytes), read.faults)
  const { text, compiled } = read
  await takeSitePolicy(db, { text, compiled, place: file.path, commit: file.commit })
}
