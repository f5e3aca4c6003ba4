import { createHmac } from 'node:crypto'

/**
 * Deliveries with the fields that GitHub and GitLab document, each with what makes it another one.
 */

const repository = {
  id: 186853002,
  name: 'shop',
  full_name: 'acme/shop',
  html_url: 'https://github.com/acme/shop',
  default_branch: 'main',
  owner: { login: 'acme' },
}
const sender = { login: 'anna', id: 21031067, type: 'User' }
const sha = 'f95f852bd8fca8fcc58a9a2d6c842781e32a215e'

export const github = {
  deployment: (change: { at: string; state?: string; environment?: string; id?: number; description?: string }) => ({
    action: 'created',
    deployment_status: {
      id: change.id ?? 209916254,
      state: change.state ?? 'success',
      creator: sender,
      description: change.description ?? '',
      environment: change.environment ?? 'production',
      target_url: '',
      log_url: 'https://github.com/acme/shop/actions/runs/7/job/9',
      environment_url: '',
      created_at: change.at,
      updated_at: change.at,
    },
    deployment: {
      id: 145988746,
      sha,
      ref: 'main',
      task: 'deploy',
      payload: {},
      environment: change.environment ?? 'production',
      description: null,
      creator: sender,
      created_at: change.at,
      updated_at: change.at,
    },
    repository,
    sender,
  }),
  push: (change: { ref?: string; message?: string; pushedAt: number; deleted?: boolean }) => ({
    ref: change.ref ?? 'refs/heads/main',
    before: '0'.repeat(39).concat('1'),
    after: sha,
    created: false,
    deleted: change.deleted ?? false,
    forced: false,
    base_ref: null,
    compare: 'https://github.com/acme/shop/compare/6113728f27ae...f95f852bd8fc',
    commits: [{ id: sha }, { id: sha.replace('f', 'e') }],
    head_commit: {
      id: sha,
      message: change.message ?? 'Raise the pool to 50\n\nBecause of the sale.',
      timestamp: '2019-05-15T15:20:41Z',
      url: `https://github.com/acme/shop/commit/${sha}`,
      author: { name: 'Anna', email: 'anna@example.com', username: 'anna' },
    },
    repository: { ...repository, pushed_at: change.pushedAt },
    pusher: { name: 'anna', email: 'anna@example.com' },
    sender,
  }),
  release: (change: { action: string; at: string }) => ({
    action: change.action,
    release: {
      id: 17372790,
      html_url: 'https://github.com/acme/shop/releases/tag/v2.1',
      tag_name: 'v2.1',
      target_commitish: 'main',
      name: 'Winter sale',
      draft: false,
      prerelease: false,
      author: sender,
      created_at: change.at,
      published_at: change.at,
    },
    repository,
    sender,
  }),
  run: (change: { at: string; action?: string; branch?: string; event?: string; conclusion?: string }) => ({
    action: change.action ?? 'completed',
    workflow: { id: 1, name: 'Deploy', path: '.github/workflows/deploy.yml', state: 'active' },
    workflow_run: {
      id: 289782451,
      name: 'Deploy',
      display_title: 'Raise the pool to 50',
      head_branch: change.branch ?? 'main',
      head_sha: sha,
      event: change.event ?? 'push',
      status: 'completed',
      conclusion: change.conclusion ?? 'failure',
      run_attempt: 1,
      html_url: 'https://github.com/acme/shop/actions/runs/289782451',
      actor: sender,
      created_at: change.at,
      updated_at: change.at,
    },
    repository,
    sender,
  }),
}

const project = {
  id: 30,
  name: 'Shop',
  web_url: 'https://gitlab.example.com/acme/shop',
  namespace: 'Acme',
  path_with_namespace: 'acme/shop',
  default_branch: 'main',
}
const user = { id: 1, name: 'Anna', username: 'anna', email: '[REDACTED]' }
const commit = 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7'

export const gitlab = {
  push: (change: { ref?: string; after?: string } = {}) => ({
    object_kind: 'push',
    event_name: 'push',
    before: '95790bf891e76fee5e1747ab589903a6a1f80f22',
    after: change.after ?? commit,
    ref: change.ref ?? 'refs/heads/main',
    checkout_sha: commit,
    user_id: 1,
    user_name: 'Anna',
    user_username: 'anna',
    project_id: 30,
    project,
    commits: [
      { id: 'b6568db1', message: 'first', title: 'first', timestamp: '2011-12-12T14:27:31+02:00' },
      {
        id: commit,
        message: 'Raise the pool to 50\n',
        title: 'Raise the pool to 50',
        timestamp: '2012-01-03T23:36:29+02:00',
        url: `https://gitlab.example.com/acme/shop/-/commit/${commit}`,
      },
    ],
    total_commits_count: 4,
  }),
  deployment: (change: { at: string; status?: string; environment?: string }) => ({
    object_kind: 'deployment',
    status: change.status ?? 'success',
    status_changed_at: change.at,
    deployment_id: 15,
    deployable_id: 796,
    deployable_url: 'https://gitlab.example.com/acme/shop/-/jobs/796',
    environment: change.environment ?? 'production',
    environment_tier: change.environment ?? 'production',
    environment_slug: change.environment ?? 'production',
    environment_external_url: 'https://shop.example.com',
    project,
    short_sha: commit.slice(0, 8),
    user,
    user_url: 'https://gitlab.example.com/anna',
    commit_url: `https://gitlab.example.com/acme/shop/-/commit/${commit}`,
    commit_title: 'Raise the pool to 50',
  }),
  pipeline: (change: { status?: string; source?: string; ref?: string; tag?: boolean; at: string }) => ({
    object_kind: 'pipeline',
    object_attributes: {
      id: 31,
      iid: 3,
      name: 'Pipeline for branch: main',
      ref: change.ref ?? 'main',
      tag: change.tag ?? false,
      sha: commit,
      before_sha: commit,
      source: change.source ?? 'push',
      status: change.status ?? 'success',
      stages: ['build', 'deploy'],
      created_at: change.at,
      finished_at: change.at,
      duration: 63,
      url: 'https://gitlab.example.com/acme/shop/-/pipelines/31',
    },
    user,
    project,
    commit: { id: commit, message: 'Raise the pool to 50\n', title: 'Raise the pool to 50' },
    builds: [],
  }),
}

/** The header by which GitHub signs a delivery. */
export const signed = (secret: string, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
