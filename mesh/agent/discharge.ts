import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { oddDockerSettings, oddKubeconfig, oddSetting } from '../../safety/command/surroundings/client-settings.ts'
import type { Condition } from '../../safety/command/surroundings.ts'
import type { RootRead } from '../../safety/command/verdict.ts'
import type { CapabilityContext, Sight } from './capability.ts'
import type { Confinement } from './confine.ts'
import { whyNotPlainGit } from './git-look.ts'
import { homeOf } from './programs.ts'
import { whyNoRootRead, writableBelow, writersOf } from './root-read.ts'

/** What an unasked run rests on besides its words. */
export type Rests = {
  conditions: readonly Condition[]
  sees: readonly Sight[]
  /** Where it runs, and what is set for it. */
  cwd: string
  environment: Record<string, string>
  /** What root looks with, outside of the sandbox. */
  rootRead: RootRead | null
}

/** Why a run may not happen unasked just now; null when everything that it rests on is so. To be asked right before it. */
export async function whyUnmet(
  { conditions, sees, cwd, environment, rootRead }: Rests,
  confinement: Pick<Confinement, 'canShow'>,
  context: Pick<CapabilityContext, 'run'>,
): Promise<string | null> {
  if (!confinement.canShow(sees)) return `in its sandbox this device cannot show the ${sees.join(' and ')} as they are`
  const why = rootRead && whyNoRootRead(rootRead)
  if (why) return `${rootRead.argv[0]} as root: ${why}`
  for (const condition of conditions) {
    const places = condition.directories.length === 0 ? [cwd] : condition.directories.map((at) => resolve(cwd, at))
    const why = await whyOne(condition, places, environment, context)
    if (why !== null) return `${condition.program}: ${why}`
  }
  return null
}

async function whyOne(
  condition: Condition,
  places: readonly string[],
  environment: Record<string, string>,
  context: Pick<CapabilityContext, 'run'>,
): Promise<string | null> {
  switch (condition.kind) {
    case 'root_only': {
      const files = condition.files.flatMap((file) => filesAt(file, places, condition.up === true))
      const [found] = files.flatMap((file) => writableBelow(file) ?? [])
      return found === undefined ? null : `it obeys ${found}, which others than root may write`
    }
    case 'git_settings': {
      for (const place of places) {
        const why = await whyNotPlainGit(place, environment, context)
        if (why !== null) return why
      }
      return null
    }
    case 'kubeconfig':
      // Most devices have none, and the parser takes memory.
      return whyFile('~/.kube/config', async (text) => oddKubeconfig((await import('yaml')).parse(text)))
    case 'docker_settings':
      return whyFile('~/.docker/config.json', (text) => oddDockerSettings(JSON.parse(text)))
    case 'plain_settings':
      return whyFile(condition.file, (text) => oddSetting(text, condition.keys))
  }
}

const atHome = (file: string): string => (file.startsWith('~/') ? join(homeOf(), file.slice(2)) : file)

function filesAt(file: string, places: readonly string[], up: boolean): string[] {
  if (/^[~/]/.test(file)) return [atHome(file)]
  return places.flatMap((place) => (up ? aboveOf(place) : [place])).map((place) => join(place, file))
}

function aboveOf(place: string): string[] {
  return place === '/' ? ['/'] : [place, ...aboveOf(dirname(place))]
}

const largestSettings = 1 << 20

/** Root's own is believed; of anybody else's, what it says is looked at. */
async function whyFile(
  name: string,
  oddIn: (text: string) => string | null | Promise<string | null>,
): Promise<string | null> {
  const file = atHome(name)
  const writers = writersOf(file)
  if (writers !== 'others') return null
  try {
    const found = statSync(file)
    if (!found.isFile() || found.size > largestSettings) return `it obeys ${file}, which is no plain file of settings`
    const odd = await oddIn(readFileSync(file, 'utf8'))
    return odd === null ? null : `it obeys ${odd} in ${file}`
  } catch {
    return `it obeys ${file}, which cannot be read`
  }
}
