import { type Grammar, type Grammars, spellOptions } from '../grammar.ts'

// Excluded: --ext-diff and --textconv run programs, --output writes, -O reads, --no-index reads any
// file.
const diff = {
  flag: `-a -b -p -q -R -s -u -w -z --abbrev --cached --cc --check --color --exit-code --full-index --ignore-all-space
    --ignore-blank-lines --ignore-space-change --merge-base --minimal --name-only --name-status --no-color --no-ext-diff
    --no-patch --no-prefix --no-renames --no-textconv --numstat --oneline --patch --quiet --raw --shortstat --staged --summary
    --text -M -C`,
  text: '-G -S --diff-filter --word-diff-regex',
  number: '-U --unified',
  'text?': '--stat --word-diff --dirstat --submodule --color --find-renames --ignore-submodules',
} as const
const log = {
  ...diff,
  flag: `${diff.flag} -i -E -F --abbrev-commit --all --all-match --author-date-order --branches --cherry-pick --date-order
    --first-parent --follow --full-history --graph --left-right --merges --no-abbrev-commit --no-decorate --no-merges
    --no-notes --reflog --remotes --reverse --tags --topo-order`,
  // Excluded: -L, which prints contents and has the path in another syntax.
  text: `${diff.text} --after --author --before --committer --grep --since --until --skip`,
  number: `${diff.number} -n --max-count`,
  'text?': `${diff['text?']} --date --decorate --format --pretty`,
}
const one = (manual: string, flag = '', values = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spellOptions({ ...(flag ? { flag } : {}), ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})
const text = { rest: 'text' } as const
// Checks operands as paths, because outside a work tree git compares any two files.
const paths = { rest: 'revision' } as const
/** Options that print patches: of all files of a repository, unless some files are named. */
const patching = '-p -u -U --patch --unified --cc --word-diff --word-diff-regex'.split(' ')
const flat =
  '-s --no-patch --stat --numstat --shortstat --summary --name-only --name-status --dirstat --quiet --raw'.split(' ')
const patches = { unless: flat, by: patching } as const

/**
 * Excluded: -c and --config-env, which set what may run a program; --exec-path, --git-dir and
 * --work-tree, which name other directories.
 */
export const git: Grammars = {
  git: {
    manual: 'git(1), git 2.39',
    options: spellOptions({ flag: '-P --no-pager --no-optional-locks --version -v', directory: '-C' }),
    bare: true,
    commands: {
      blame: {
        ...one(
          'git-blame(1)',
          '-b -c -e -f -l -M -C -n -p -s -t -w --root --show-email --show-name',
          '-L --since --date',
          paths,
        ),
      },
      // Allows no operand, because a name would create a branch.
      branch: {
        ...one(
          'git-branch(1)',
          '-a -i -l -q -r -v -vv --all --list --no-color --remotes --show-current --verbose',
          '--contains --no-contains --merged --no-merged --format --points-at --sort',
        ),
        operands: {},
      },
      // Excluded: -p, which prints the contents of any object, because an object's name does not
      // tell the file.
      'cat-file': { ...one('git-cat-file(1)', '-e -s -t', '', { first: ['text'] }), requires: ['-e', '-s', '-t'] },
      config: {
        ...one(
          'git-config(1)',
          '--global --local --system --worktree --show-origin --show-scope --bool --int --path',
          '--get --get-all --type',
        ),
        // Allows settings without a credential. Listing is excluded, because it shows all settings.
        requires: ['--get', '--get-all'],
        refuses: [
          '^(?!(?:bool|int|path|user\\.(?:name|email)|core\\.[a-z]+|init\\.defaultbranch|branch\\.[\\w./-]+\\.(?:remote|merge|rebase)|pull\\.[a-z]+|push\\.[a-z]+|fetch\\.[a-z]+|merge\\.[a-z]+|gc\\.[a-z]+|pack\\.[a-z]+|receive\\.[a-z]+|safe\\.directory|commit\\.gpgsign|tag\\.gpgsign|user\\.signingkey|color\\.[a-z]+|diff\\.[a-z]+|log\\.[a-z]+|index\\.[a-z]+|feature\\.[a-z]+|extensions\\.[a-z]+|remote\\.[\\w-]+\\.fetch)$)',
        ],
      },
      'count-objects': one('git-count-objects(1)', '-v -H --verbose --human-readable'),
      describe: one(
        'git-describe(1)',
        '--abbrev=0 --all --always --contains --dirty --exact-match --long --tags',
        '--match --exclude',
        text,
      ),
      diff: { options: spellOptions(diff), operands: paths, recursive: patches },
      'for-each-ref': one('git-for-each-ref(1)', '', '--count --format --sort --contains --merged', text),
      fsck: one(
        'git-fsck(1)',
        '--no-progress --connectivity-only --no-dangling --no-reflogs --full --unreachable',
        '',
        text,
      ),
      grep: {
        // Excluded: -O opens files with a program, -f reads patterns from a file.
        options: spellOptions({
          flag: '-a -c -E -F -h -H -i -I -l -L -n -o -P -v -w --cached --count --heading --ignore-case --line-number --name-only',
          text: '-e',
          number: '-A -B -C -m --max-count --max-depth',
        }),
        operands: { first: ['text'], rest: 'revision', min: 1, unlessOption: ['-e'] },
        recursive: true,
      },
      log: { options: spellOptions(log), digits: true, operands: paths, recursive: patching },
      'ls-files': one(
        'git-ls-files(1)',
        '-c -d -i -k -m -o -s -t -u -v -z --cached --deleted --modified --others --stage --unmerged --exclude-standard --error-unmatch',
        '-x',
        text,
      ),
      'ls-tree': one(
        'git-ls-tree(1)',
        '-d -l -r -t -z --full-name --full-tree --long --name-only --name-status',
        '--format',
        text,
      ),
      'merge-base': one('git-merge-base(1)', '-a --all --is-ancestor --octopus', '', text),
      'name-rev': one('git-name-rev(1)', '--all --always --name-only --tags', '', text),
      reflog: {
        options: spellOptions(log),
        bare: true,
        recursive: patching,
        commands: { show: { operands: text } },
      },
      // Requires -n for show, because without it git connects to the remote.
      remote: {
        ...one('git-remote(1)', '-v --verbose'),
        bare: true,
        commands: {
          'get-url': one('git-remote(1)', '--all --push', '', { first: ['name'], min: 1 }),
          show: { ...one('git-remote(1)', '-n', '', { rest: 'name' }), requires: ['-n'] },
        },
      },
      'rev-list': {
        options: spellOptions({ ...log, flag: `${log.flag} --count --objects` }),
        operands: paths,
        recursive: patching,
      },
      'rev-parse': one(
        'git-rev-parse(1)',
        `-q --abbrev-ref --absolute-git-dir --all --branches --git-dir --is-bare-repository --is-inside-work-tree
        --is-shallow-repository --quiet --remotes --show-cdup --show-prefix --show-toplevel --symbolic --symbolic-full-name --tags
        --verify`,
        '',
        text,
      ),
      shortlog: {
        options: spellOptions({
          ...log,
          flag: `${log.flag} -e -n -s --email --numbered --summary`,
          number: '--max-count',
        }),
        digits: true,
        operands: paths,
      },
      show: { options: spellOptions(log), operands: paths, recursive: patches },
      'show-ref': one('git-show-ref(1)', '-d -q -s --head --heads --tags --dereference --verify', '', text),
      stash: {
        commands: {
          list: { options: spellOptions(log), recursive: patching },
          show: { options: spellOptions(diff), operands: text, recursive: patching },
        },
      },
      status: {
        options: spellOptions({
          flag: '-b -s -u -v -z --branch --long --short --show-stash --verbose --ahead-behind --no-ahead-behind --no-renames',
          'text?': '--ignored --porcelain --untracked-files --column --ignore-submodules',
        }),
        operands: paths,
      },
      submodule: {
        bare: true,
        commands: { status: one('git-submodule(1)', '--cached --recursive', '', text) },
      },
      tag: {
        ...one(
          'git-tag(1)',
          '-l -n --list',
          '--contains --no-contains --merged --no-merged --points-at --sort --format',
          text,
        ),
        requires: ['-l', '--list', '-n', '--contains', '--merged', '--points-at'],
      },
      version: one('git-version(1)', '--build-options'),
      worktree: { commands: { list: one('git-worktree(1)', '-v --porcelain') } },
    },
  },
}
