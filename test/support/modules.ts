import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from '@babel/parser'

/** One file of the repository: what it exports, and which names it takes from where. */
export type Module = { path: string; exports: string[]; imports: Import[] }

/**
 * `from` is a path of the repository, or a package as it was written. The name `*` stands for all
 * of them.
 */
type Import = { from: string; name: string }

type Node = { type: string; [key: string]: unknown }
type Named = Node & { name?: string; value?: string }
type Specifier = Node & { imported?: Named; local: Named; exported: Named }
type Statement = Node & {
  source?: { value: string } | null
  specifiers?: Specifier[]
  declaration?: Node | null
}

/**
 * Every file with code. Tests are read by their lines, which is enough for what they import, and
 * fast.
 */
export function readModules(): Module[] {
  const known = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx', '*.js'])
  const paths = known.toString().trim().split('\n')
  return paths.map((path) => readModule(path, readFileSync(path, 'utf8')))
}

export const readModule = (path: string, text: string): Module =>
  path.startsWith('test/') ? readTest(path, text) : readSource(path, text)

function readSource(path: string, text: string): Module {
  const body = parseModule(path, text)
  const from = (source: string) => (source.startsWith('.') ? join(dirname(path), source) : source)
  const imports = body.flatMap((statement) => importsOf(statement, from, text))
  const dynamic = /\bimport\(/.test(text) ? body.flatMap((statement) => dynamicImports(statement, from)) : []
  return { path, exports: body.flatMap(exportsOf), imports: [...imports, ...dynamic] }
}

function readTest(path: string, text: string): Module {
  const head = text.slice(0, (text.match(/[\s\S]*^(?:import|export|\}) .*from '.*'$/m)?.[0] ?? '').length)
  const from = (source: string) => (source.startsWith('.') ? join(dirname(path), source) : source)
  const imports = parseModule(path, head).flatMap((statement) => importsOf(statement, from, text))
  const dynamic = [...text.matchAll(/(?:\{([^{}]*)\} = await )?\bimport\(\s*'([^']+)'\s*\)(?:\)?\.(\w+))?/g)].flatMap(
    ([, names = '', source = '', name = '']) => {
      const taken = name ? [name] : names.split(',').map((each) => each.replace(/:.*/, '').trim())
      return taken.filter(Boolean).map((each) => ({ from: from(source), name: each }))
    },
  )
  return { path, exports: [], imports: [...imports, ...dynamic] }
}

function parseModule(path: string, text: string): Statement[] {
  const plugins = path.endsWith('.tsx') ? (['typescript', 'jsx'] as const) : (['typescript'] as const)
  const { program } = parse(text, { sourceType: 'module', plugins: [...plugins], attachComment: false })
  return program.body as unknown as Statement[]
}

const nameOf = (node: Named | undefined): string => node?.name ?? node?.value ?? '*'

function importsOf({ type, source, specifiers }: Statement, from: (source: string) => string, text: string): Import[] {
  if (!source) return []
  if (type === 'ExportAllDeclaration') return [{ from: from(source.value), name: '*' }]
  return (specifiers ?? []).flatMap((each) => {
    const names =
      each.type === 'ImportNamespaceSpecifier'
        ? membersOf(nameOf(each.local), text)
        : [type === 'ImportDeclaration' ? importedName(each) : nameOf(each.local)]
    return names.map((name) => ({ from: from(source.value), name }))
  })
}

/** For a module imported whole: the names taken of it, and `*` where it is handed on whole. */
function membersOf(module: string, text: string): string[] {
  const uses = [...text.matchAll(new RegExp(`(?<![\\w.'/])${module}\\b(?:\\.(\\w+))?`, 'g'))].slice(1)
  return [...new Set(uses.map(([, name]) => name ?? '*'))]
}

function importedName({ type, imported }: Specifier): string {
  return type === 'ImportDefaultSpecifier' ? 'default' : nameOf(imported)
}

function exportsOf({ type, declaration, specifiers = [] }: Statement): string[] {
  if (type === 'ExportDefaultDeclaration') return ['default']
  if (type !== 'ExportNamedDeclaration') return []
  if (!declaration) return specifiers.map(({ exported }) => nameOf(exported))
  const { id, declarations } = declaration as Node & { id?: Named; declarations?: { id: Node }[] }
  return id ? [nameOf(id)] : (declarations ?? []).flatMap((each) => boundNames(each.id))
}

/** `a`, `{ a, b: c }` and `[a]`. */
function boundNames(pattern: Node): string[] {
  const { name, properties, elements } = pattern as Node & { name?: string; properties?: Node[]; elements?: Node[] }
  if (name) return [name]
  return [...(properties ?? []).map((each) => each.value as Node), ...(elements ?? [])].flatMap(boundNames)
}

/**
 * `(await import('./a.ts')).b`, `const { b } = await import('./a.ts')`, `import('./a.ts').B` as a
 * type, and whatever else for all.
 */
function dynamicImports(root: Node, from: (source: string) => string): Import[] {
  const found: Import[] = []
  const visit = (node: Node, parents: Node[]): void => {
    const source = sourceOf(node)
    if (source !== null) {
      const names = takenNames(node, parents)
      found.push(...names.map((name) => ({ from: from(source), name })))
    }
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (child && typeof child.type === 'string') visit(child, [node, ...parents])
      }
    }
  }
  visit(root, [])
  return found
}

function sourceOf(node: Node): string | null {
  const {
    callee,
    arguments: given,
    argument,
    source,
  } = node as Node & {
    callee?: Node
    arguments?: { value?: string }[]
    argument?: { value?: string }
    source?: { value?: string }
  }
  if (node.type === 'CallExpression' && callee?.type === 'Import') return given?.[0]?.value ?? null
  if (node.type === 'ImportExpression') return source?.value ?? null
  return node.type === 'TSImportType' ? (argument?.value ?? source?.value ?? null) : null
}

function takenNames(node: Node, [awaited, user]: Node[]): string[] {
  if (node.type === 'TSImportType') return [nameOf(node.qualifier as Named | undefined)]
  if (awaited?.type !== 'AwaitExpression') return ['*']
  if (user?.type === 'MemberExpression') return [nameOf(user.property as Named)]
  const { id } = (user ?? {}) as { id?: Node & { properties?: (Node & { key: Named })[] } }
  return id?.properties?.map(({ key }) => nameOf(key)) ?? ['*']
}
