import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

/** The git checkout on each web node that says which address leads where. */
export const routesFile = 'site/routes.json'
const featuresFile = 'site/features.json'

/** The author of our commits; neither the machine's git settings nor a person's are read. */
const environment = {
  PATH: '/usr/bin:/bin',
  HOME: '/nonexistent',
  LC_ALL: 'C.UTF-8',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Deploy',
  GIT_AUTHOR_EMAIL: 'deploy@lab.internal',
  GIT_COMMITTER_NAME: 'Deploy',
  GIT_COMMITTER_EMAIL: 'deploy@lab.internal',
}

/** Makes the checkout with its first commit, where there is none. Where git is missing or fails, there is none afterwards either. */
export function makeSite(lab: Lab, node: NodePlan): void {
  if (hasSite(lab, node)) return
  const directory = siteDirectory(lab, node)
  rmSync(directory, { recursive: true, force: true })
  ownDirectory(lab, directory)
  writeForNode(lab, routesOf(lab, node), desiredRoutes(lab, node))
  writeForNode(lab, featuresOf(lab, node), desiredFeatures)
  const isMade =
    git(lab, node, 'init', '--quiet', '--template=', '--initial-branch=main') !== null &&
    git(lab, node, 'add', 'routes.json', 'features.json') !== null &&
    git(lab, node, 'commit', '--quiet', '--message=First routes') !== null
  if (!isMade) rmSync(directory, { recursive: true, force: true })
}

/** The checkout as it was at the beginning, whatever was committed since. */
export function renewSite(lab: Lab, node: NodePlan): void {
  rmSync(siteDirectory(lab, node), { recursive: true, force: true })
  makeSite(lab, node)
}

export function hasSite(lab: Lab, node: NodePlan): boolean {
  return git(lab, node, 'rev-parse', '--verify', 'HEAD') !== null
}

/** Commits routes that end in the middle, as a deploy that was cut off does. False where git did not. */
export function deployBroken(lab: Lab, node: NodePlan): boolean {
  const whole = desiredRoutes(lab, node)
  writeForNode(lab, routesOf(lab, node), `${whole.slice(0, whole.lastIndexOf('"'))}\n`)
  return git(lab, node, 'commit', '--quiet', '--all', '--message=Deploy 42') !== null
}

/** Commits a release that turns on a search whose index is not there: it answers with errors. False where git did not. */
export function deployFeature(lab: Lab, node: NodePlan): boolean {
  writeForNode(lab, featuresOf(lab, node), `${JSON.stringify({ searchV2: true }, null, 2)}\n`)
  return (
    git(lab, node, 'add', 'features.json') !== null &&
    git(lab, node, 'commit', '--quiet', '--message=Deploy 43: search v2') !== null
  )
}

/** The absolute path of the routes where they are no JSON; null where they are, and where there is no checkout. */
export function brokenRoutes(lab: Lab, node: NodePlan): string | null {
  const file = routesOf(lab, node)
  try {
    JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    return error instanceof SyntaxError ? file : null
  }
  return null
}

/** What of the checkout is not as desired: the routes' content, and whatever is not committed. */
export function siteProblems(lab: Lab, node: NodePlan): string[] {
  const problems: string[] = []
  let routes: string | null = null
  try {
    routes = readFileSync(routesOf(lab, node), 'utf8')
  } catch {
    // It is not as desired then.
  }
  if (routes !== desiredRoutes(lab, node)) problems.push(`${routesFile} is not as desired`)
  if (readFeatures(lab, node) !== desiredFeatures) problems.push(`${featuresFile} is not as desired`)
  const changed = git(lab, node, 'status', '--porcelain')
  if (changed === null) problems.push('git cannot tell whether all is committed')
  else if (changed !== '') problems.push(`not committed: ${changed.trim().replaceAll('\n', ', ')}`)
  return problems
}

function desiredRoutes(lab: Lab, node: NodePlan): string {
  const { tenants } = lab.topology.shards.find(({ id }) => id === node.shard)!
  const routes = Object.fromEntries(tenants.map((tenant) => [`/${tenant}`, `tenants/${tenant}/index.html`]))
  return `${JSON.stringify({ routes }, null, 2)}\n`
}

const desiredFeatures = `${JSON.stringify({ searchV2: false }, null, 2)}\n`

const featuresOf = (lab: Lab, { id }: NodePlan): string => join(nodeDirectory(lab, id), featuresFile)

/** A checkout of an earlier version has no such file, and nothing turned on. */
function readFeatures(lab: Lab, node: NodePlan): string {
  try {
    return readFileSync(featuresOf(lab, node), 'utf8')
  } catch {
    return desiredFeatures
  }
}

function routesOf(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), routesFile)
}

function siteDirectory(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), 'site')
}

/** What git prints in the checkout, run as the node's own user; null when it fails or is not there. */
function git(lab: Lab, node: NodePlan, ...words: string[]): string | null {
  const { status, stdout } = spawnSync('git', ['--git-dir=.git', '--work-tree=.', ...words], {
    cwd: siteDirectory(lab, node),
    env: environment,
    encoding: 'utf8',
    ...lab.account,
  })
  return status === 0 ? stdout : null
}
