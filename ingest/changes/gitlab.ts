import type { Change, ParsedChanges } from '../../domain/change.ts'
import { formatCount } from '../../domain/format.ts'
import { isFields, nameOfShape, type RawFields, readBody } from '../fields.ts'
import { type ChangeDelivery, deliveryOf, firstLineIn, objectIn, pastMoment, toChange, wordIn } from './fields.ts'

/** A change, or why the delivery contains no change. */
type GitlabRead = Parameters<typeof toChange>[0] | string
type GitlabReader = (body: RawFields, project: Project, nowIso: string) => GitlabRead
type Project = { name: string; branch: string | null; url: string | null }

/**
 * Reads GitLab's webhooks (https://docs.gitlab.com/user/project/integrations/webhook_events/):
 * deployments, ended pipelines of the default branch or of a tag, and pushes to the default branch.
 * Never throws.
 */
export function parseGitlab(delivery: ChangeDelivery, nowIso: string): ParsedChanges {
  const body = readBody(delivery.bytes)
  if (!body.ok) return body
  if (!isFields(body.value))
    return { ok: false, reason: `the request body is ${nameOfShape(body.value)}, not an object` }
  const { event } = delivery
  const reader = event !== null && Object.hasOwn(gitlabReaders, event) ? gitlabReaders[event] : undefined
  if (!reader)
    return ignoreGitlab(`${event ?? 'this event'} reports no change: send ${Object.keys(gitlabReaders).join(', ')}`)
  const fields = objectIn(body.value, 'project')
  const name = wordIn(fields, 'path_with_namespace')
  if (name === null) return { ok: false, reason: 'project.path_with_namespace is missing' }
  const project = { name, branch: wordIn(fields, 'default_branch'), url: wordIn(fields, 'web_url') }
  const read = reader(body.value, project, nowIso)
  if (typeof read === 'string') return ignoreGitlab(read)
  return { ok: true, changes: [toChange(read, deliveryOf(delivery))], ignored: null }
}

const ignoreGitlab = (ignored: string): ParsedChanges => ({ ok: true, changes: [], ignored })

const gitlabSource: Change['source'] = 'gitlab'

const gitlabReaders: Readonly<Record<string, GitlabReader>> = {
  'Push Hook': readGitlabPush,
  'Deployment Hook': readDeployment,
  'Pipeline Hook': readPipeline,
}

function readGitlabPush(body: RawFields, { name, branch, url }: Project, nowIso: string): GitlabRead {
  const ref = wordIn(body, 'ref') ?? ''
  if (branch === null || ref !== `refs/heads/${branch}`) return `${ref || 'this push'} is not the default branch`
  const after = wordIn(body, 'after') ?? ''
  if (/^0*$/.test(after)) return `${ref} was deleted`
  const commits = Array.isArray(body.commits) ? body.commits.filter(isFields) : []
  const head = commits.find((each) => each.id === after) ?? commits.at(-1) ?? {}
  const words = firstLineIn(head, 'title') ?? firstLineIn(head, 'message')
  const total = body.total_commits_count
  const count = typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : commits.length
  return {
    source: gitlabSource,
    // Uses the time of receipt, because a push has no time and the times of commits come from the
    // clocks of their authors.
    at: nowIso,
    title: `Push to ${branch} of ${name}${words ? `: ${words}` : ''} (${formatCount(count, 'commit')})`,
    author: wordIn(body, 'user_username') ?? wordIn(body, 'user_name'),
    url: wordIn(head, 'url') ?? url,
    revision: after,
    labels: { repository: name, branch },
  }
}

/** States in which a deployment changes something. In `created` and `blocked` it does not run. */
const gitlabStates = ['running', 'success', 'failed', 'canceled']

function readDeployment(body: RawFields, { name }: Project, nowIso: string): GitlabRead {
  const state = wordIn(body, 'status') ?? 'unknown'
  if (!gitlabStates.includes(state)) return `a deployment that is ${state} changed nothing yet`
  const environment = wordIn(body, 'environment')
  const words = firstLineIn(body, 'commit_title')
  const user = objectIn(body, 'user')
  const commit = wordIn(body, 'commit_url')
  return {
    source: gitlabSource,
    environment,
    at: pastMoment(wordIn(body, 'status_changed_at'), nowIso),
    title: `Deployment of ${name}${environment ? ` to ${environment}` : ''}: ${state}${words ? `: ${words}` : ''}`,
    author: wordIn(user, 'username') ?? wordIn(user, 'name'),
    url: wordIn(body, 'deployable_url') ?? commit,
    revision: /\/commit\/([0-9a-f]{7,64})$/.exec(commit ?? '')?.[1] ?? wordIn(body, 'short_sha'),
    labels: {
      repository: name,
      ...(environment && { environment, deployment: `${name}@${environment}` }),
      tier: wordIn(body, 'environment_tier'),
      ref: wordIn(body, 'ref'),
    },
  }
}

function readPipeline(body: RawFields, { name, branch }: Project, nowIso: string): GitlabRead {
  const pipeline = objectIn(body, 'object_attributes')
  const state = wordIn(pipeline, 'status') ?? 'unknown'
  if (state !== 'success' && state !== 'failed') return `a pipeline that is ${state} has not ended`
  if (wordIn(pipeline, 'source') === 'merge_request_event') return 'a pipeline of a merge request deploys nothing'
  const ref = wordIn(pipeline, 'ref') ?? ''
  const isTag = pipeline.tag === true
  if (!isTag && (branch === null || ref !== branch)) return `${ref || 'this pipeline'} is not the default branch`
  const words = firstLineIn(objectIn(body, 'commit'), 'message')
  const user = objectIn(body, 'user')
  return {
    source: gitlabSource,
    at: pastMoment(wordIn(pipeline, 'finished_at'), nowIso),
    title: `Pipeline of ${name} on ${isTag ? 'tag ' : ''}${ref}: ${state}${words ? `: ${words}` : ''}`,
    author: wordIn(user, 'username') ?? wordIn(user, 'name'),
    url: wordIn(pipeline, 'url'),
    revision: wordIn(pipeline, 'sha'),
    labels: { repository: name, ...(isTag ? { tag: ref } : { branch: ref }) },
  }
}
