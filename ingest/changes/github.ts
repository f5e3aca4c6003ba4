import type { Change, ParsedChanges } from '../../domain/change.ts'
import { formatCount } from '../../domain/format.ts'
import { isFields, nameOfShape, type RawFields, readBody } from '../fields.ts'
import { type ChangeDelivery, deliveryOf, firstLineIn, objectIn, pastMoment, toChange, wordIn } from './fields.ts'

/** A change, or why the delivery contains no change. */
type GithubRead = Parameters<typeof toChange>[0] | string

type GithubReader = (body: RawFields, repository: Repository, nowIso: string) => GithubRead

type Repository = { name: string; branch: string | null; fields: RawFields }

/**
 * Reads GitHub's webhooks (https://docs.github.com/en/webhooks/webhook-events-and-payloads):
 * deployments, releases, workflow runs, and pushes to the default branch. Never throws.
 */
export function parseGithub(delivery: ChangeDelivery, nowIso: string): ParsedChanges {
  const body = readBody(delivery.bytes)
  if (!body.ok) return body
  if (!isFields(body.value))
    return { ok: false, reason: `the request body is ${nameOfShape(body.value)}, not an object` }
  const { event } = delivery
  const reader = event !== null && Object.hasOwn(githubReaders, event) ? githubReaders[event] : undefined
  if (!reader)
    return ignoreGithub(`the event ${event ?? ''} reports no change: send ${Object.keys(githubReaders).join(', ')}`)
  const fields = objectIn(body.value, 'repository')
  const name = wordIn(fields, 'full_name')
  if (name === null) return { ok: false, reason: 'repository.full_name is missing' }
  const read = reader(body.value, { name, branch: wordIn(fields, 'default_branch'), fields }, nowIso)
  if (typeof read === 'string') return ignoreGithub(read)
  // Ignores the header with the delivery's id, because the header is not signed. The body is
  // signed, and a repeat has an equal body.
  return { ok: true, changes: [toChange(read, deliveryOf({ ...delivery, key: null }))], ignored: null }
}

const ignoreGithub = (ignored: string): ParsedChanges => ({ ok: true, changes: [], ignored })

const githubSource: Change['source'] = 'github'

const githubReaders: Readonly<Record<string, GithubReader>> = {
  deployment_status: readDeploymentStatus,
  push: readGithubPush,
  release: readRelease,
  workflow_run: readWorkflowRun,
}

/** States in which another version may run than before. A replaced deployment is `inactive`. */
const githubStates = ['in_progress', 'success', 'failure', 'error']

function readDeploymentStatus(body: RawFields, { name }: Repository, nowIso: string): GithubRead {
  const status = objectIn(body, 'deployment_status')
  const deployment = objectIn(body, 'deployment')
  const state = wordIn(status, 'state') ?? 'unknown'
  if (!githubStates.includes(state)) return `a deployment that is ${state} changed nothing yet`
  const environment = wordIn(status, 'environment') ?? wordIn(deployment, 'environment')
  const words = firstLineIn(status, 'description') ?? firstLineIn(deployment, 'description')
  return {
    source: githubSource,
    environment,
    at: pastMoment(wordIn(status, 'updated_at') ?? wordIn(status, 'created_at'), nowIso),
    title: `Deployment of ${name}${environment ? ` to ${environment}` : ''}: ${state}${words ? `: ${words}` : ''}`,
    author: wordIn(objectIn(deployment, 'creator'), 'login') ?? wordIn(objectIn(body, 'sender'), 'login'),
    url: wordIn(status, 'log_url') ?? wordIn(status, 'target_url') ?? wordIn(status, 'environment_url'),
    revision: wordIn(deployment, 'sha'),
    labels: {
      repository: name,
      ...(environment && { environment, deployment: `${name}@${environment}` }),
      ref: wordIn(deployment, 'ref'),
      task: wordIn(deployment, 'task'),
    },
  }
}

function readGithubPush(body: RawFields, { name, branch, fields }: Repository, nowIso: string): GithubRead {
  const ref = wordIn(body, 'ref') ?? ''
  if (branch === null || ref !== `refs/heads/${branch}`) return `${ref || 'this push'} is not the default branch`
  if (body.deleted === true) return `${ref} was deleted`
  const head = objectIn(body, 'head_commit')
  const words = firstLineIn(head, 'message')
  const count = Array.isArray(body.commits) ? body.commits.length : 0
  const forced = body.forced === true ? ', forced' : ''
  return {
    source: githubSource,
    // Ignores the times of commits, because they come from the clocks of their authors.
    at: pastMoment(fields.pushed_at, nowIso),
    title: `Push to ${branch} of ${name}${words ? `: ${words}` : ''} (${formatCount(count, 'commit')}${forced})`,
    author: wordIn(objectIn(body, 'pusher'), 'name') ?? wordIn(objectIn(body, 'sender'), 'login'),
    url: wordIn(body, 'compare') ?? wordIn(head, 'url'),
    revision: wordIn(body, 'after'),
    labels: { repository: name, branch },
  }
}

function readRelease(body: RawFields, { name }: Repository, nowIso: string): GithubRead {
  const action = wordIn(body, 'action') ?? 'unknown'
  // Accepts only `published`: one release may send `created`, `released` and `published`, and every
  // release sends `published`.
  if (action !== 'published') return `only a published release is a change, and the action of this event is ${action}`
  const release = objectIn(body, 'release')
  const tag = wordIn(release, 'tag_name') ?? ''
  const words = firstLineIn(release, 'name')
  return {
    source: githubSource,
    at: pastMoment(wordIn(release, 'published_at'), nowIso),
    title: `Release ${tag} of ${name}${words && words !== tag ? `: ${words}` : ''}`,
    author: wordIn(objectIn(release, 'author'), 'login') ?? wordIn(objectIn(body, 'sender'), 'login'),
    url: wordIn(release, 'html_url'),
    revision: tag,
    labels: { repository: name, tag },
  }
}

function readWorkflowRun(body: RawFields, { name, branch }: Repository, nowIso: string): GithubRead {
  const action = wordIn(body, 'action') ?? 'unknown'
  if (action !== 'completed') return `a workflow run that is ${action} has not ended`
  const run = objectIn(body, 'workflow_run')
  const on = wordIn(run, 'head_branch')
  if (branch === null || on !== branch) return `this run is of ${on ?? 'no branch'}, not of the default branch`
  if ((wordIn(run, 'event') ?? '').startsWith('pull_request')) return 'a run for a pull request deploys nothing'
  const conclusion = wordIn(run, 'conclusion') ?? 'unknown'
  if (conclusion === 'skipped') return 'a run that was skipped did nothing'
  const workflow = wordIn(run, 'name') ?? ''
  const words = firstLineIn(run, 'display_title')
  return {
    source: githubSource,
    at: pastMoment(wordIn(run, 'updated_at'), nowIso),
    title: `Workflow ${workflow} of ${name} on ${branch}: ${conclusion}${words ? `: ${words}` : ''}`,
    author: wordIn(objectIn(run, 'actor'), 'login') ?? wordIn(objectIn(body, 'sender'), 'login'),
    url: wordIn(run, 'html_url'),
    revision: wordIn(run, 'head_sha'),
    labels: { repository: name, branch, workflow },
  }
}
