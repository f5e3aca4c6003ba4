import type { Surroundings } from '../surroundings.ts'

/**
 * Settings that outweigh those of every file, so that what is changed between the look at the settings and the run starts nothing either.
 * `diff.external` and the drivers of attributes have no value that means none.
 */
const overrides: readonly [string, string][] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.sshCommand', 'false'],
  ['core.askPass', 'false'],
  ['core.alternateRefsCommand', 'false'],
  ['gpg.program', 'false'],
  ['gpg.ssh.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['log.showSignature', 'false'],
  ['status.submoduleSummary', 'false'],
  ['submodule.recurse', 'false'],
  ['diff.submodule', 'short'],
  ['protocol.allow', 'never'],
]

const switches: Record<string, string> = {
  GIT_CONFIG_COUNT: String(overrides.length),
  ...Object.fromEntries(
    overrides.flatMap(([key, value], n) => [
      [`GIT_CONFIG_KEY_${n}`, key],
      [`GIT_CONFIG_VALUE_${n}`, value],
    ]),
  ),
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_ASKPASS: 'false',
  GIT_EDITOR: 'false',
  GIT_NO_LAZY_FETCH: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
}

export const git: [string, Surroundings][] = [
  [
    'git',
    {
      manual: 'git-config(1), gitattributes(5), githooks(5), gitsubmodules(7), git 2.39',
      reach: 'prints',
      obeys:
        'settings of the repository, its work trees, its submodules and the user: programs for fsmonitor, diff, textconv, filters, gpg, ssh, pagers, hooks; includes; promisor remotes',
      switches,
      conditions: [{ kind: 'git_settings' }],
      // Enters submodules of the past, which nobody can list beforehand.
      asksWith: ['--submodule'],
      except: ['version'],
    },
  ],
]
