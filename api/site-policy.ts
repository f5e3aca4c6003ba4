import type { Db } from '../db/connect.ts'
import { noteUnreadablePolicy, readSitePolicies, takeSitePolicy } from '../db/site-policies.ts'
import { sha256 } from '../domain/digest.ts'
import type { Knowledge } from '../knowledge/knowledge.ts'
import { readSitePolicy } from '../safety/site/read.ts'
import { toolFacts } from '../tools/registry.ts'
import type { ApiDeps } from './deps.ts'

/**
 * Applies the policy file that was found beside the runbooks. Without a file the last valid policy
 * stays in force, and the stored reading reports the missing file.
 */
export async function takeUpSitePolicy({
  db,
  knowledge,
  log,
}: Pick<ApiDeps, 'db' | 'knowledge' | 'log'>): Promise<void> {
  try {
    await takeFound(db, knowledge)
  } catch (error) {
    log.error({ err: error }, "the site's policy could not be read; the last valid policy stays in force")
  }
}

async function takeFound(db: Db, knowledge: Knowledge): Promise<void> {
  const [file, second] = knowledge.policies()
  if (!file) return await noteGone(db, knowledge)
  if (second) {
    const why = `there are two policies: ${file.path} and ${second.path}`
    return await noteUnreadablePolicy(db, null, [{ line: 1, why, remedy: 'keep one of the two files' }])
  }
  if ('problem' in file) return await noteUnreadablePolicy(db, null, [{ line: 1, ...file.problem }])
  const read = readSitePolicy(file.bytes, toolFacts, file.commit)
  if (!read.ok) return await noteUnreadablePolicy(db, sha256(file.bytes), read.faults)
  const { text, compiled } = read
  await takeSitePolicy(db, { text, compiled, place: file.path, commit: file.commit })
}

/**
 * Records that there is no policy file, but only if all places could be read. The list of runbooks
 * reports a place that cannot be read.
 */
async function noteGone(db: Db, knowledge: Knowledge): Promise<void> {
  const { places } = knowledge.list()
  if (places.some(({ readAt, error }) => readAt === null || error !== null)) return
  const { inForce, waiting } = await readSitePolicies(db)
  if (!inForce && !waiting) return
  const remedy = 'put the file back; to remove all rules, write "rules: []" and have an admin accept the file'
  await noteUnreadablePolicy(db, null, [{ line: 1, why: 'policy.yaml is gone', remedy }])
}
