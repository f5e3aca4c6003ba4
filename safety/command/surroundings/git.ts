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

/** One setting as git reads it, with where it is from. */
export type GitSetting = { scope: string; origin: string; key: string; value: string }

/**
 * Settings that only describe a repository, its branches and remotes, and how a read looks. What is missing could start a program, lead
 * to other files or to a host: `core.fsmonitor`, `core.worktree`, `diff.<driver>`, `filter.<driver>`, `include`, `alias`, `gpg`, `credential`,
 * `remote.<name>.promisor`, `extensions.partialClone`.
 */
const describing: readonly string[] = [
  'core\\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|safecrlf|eol|symlinks)',
  'core\\.(?:sharedrepository|abbrev|quotepath|compression|whitespace|untrackedcache|preloadindex|checkstat|trustctime)',
  'core\\.(?:bigfilethreshold|sparsecheckout|sparsecheckoutcone|protecthfs|protectntfs|longpaths|commitgraph|multipackindex)',
  'user\\.(?:name|email|signingkey)',
  'remote\\..+\\.(?:url|pushurl|fetch|push|tagopt|prune|mirror)',
  'branch\\..+\\.(?:remote|merge|rebase|description|pushremote)',
  'branch\\.(?:sort|autosetupmerge|autosetuprebase)',
  'remote\\.pushdefault',
  'extensions\\.(?:objectformat|worktreeconfig|refstorage)',
  'init\\.defaultbranch',
  '(?:pull|push|fetch|gc|pack|index|rerere|rebase|advice|color|column|i18n|maintenance)\\.[^.]+',
  'blame\\.(?:showroot|showemail|date|coloring)',
  'color\\..+\\..+',
  'merge\\.(?:ff|conflictstyle|renames|stat)',
  'diff\\.(?:renames|algorithm|mnemonicprefix|noprefix|context|interhunkcontext|colormoved|renamelimit|indentheuristic|suppressblankempty)',
  'log\\.(?:date|abbrevcommit|decorate|follow|mailmap)',
  'status\\.(?:short|branch|showstash|showuntrackedfiles|relativepaths|aheadbehind|renames)',
  'commit\\.(?:gpgsign|verbose)',
  'tag\\.(?:gpgsign|sort)',
  'receive\\.deny[a-z]+',
  'safe\\.directory',
  'submodule\\.(?:active|.+\\.(?:url|active|ignore|branch))',
]
const harmless = new RegExp(`^(?:${describing.join('|')})$`, 'is')

/** No program, whatever git takes the value for. */
const off = /^(?:false|no|off|0|)$/i

/**
 * The first setting that a read must not obey; null when all of them only describe. What a person with the rights of root wrote is
 * believed: `isTrusted` says that of a file.
 */
export function oddGitSetting(
  settings: readonly GitSetting[],
  isTrusted: (file: string) => boolean,
  isOwnWorkTree: (path: string) => boolean,
): GitSetting | null {
  const odd = settings.find(({ scope, origin, key, value }) => {
    if (scope === 'command' || harmless.test(key)) return false
    if (/^core\.fsmonitor$/i.test(key) && off.test(value)) return false
    if (/^core\.worktree$/i.test(key) && isOwnWorkTree(value)) return false
    return !(origin.startsWith('file:') && isTrusted(origin.slice('file:'.length)))
  })
  return odd ?? null
}

/** Reads `git config --list -z --show-scope --show-origin`; null when it is not that. */
export function gitSettingsIn(printed: string): GitSetting[] | null {
  const parts = printed.split('\0')
  if (parts.pop() !== '' || parts.length % 3 !== 0) return null
  const settings: GitSetting[] = []
  for (let at = 0; at < parts.length; at += 3) {
    const [scope, origin, pair] = parts.slice(at, at + 3) as [string, string, string]
    const end = pair.indexOf('\n')
    // A key without a value is true.
    settings.push({
      scope,
      origin,
      key: end < 0 ? pair : pair.slice(0, end),
      value: end < 0 ? 'true' : pair.slice(end + 1),
    })
  }
  return settings
}
