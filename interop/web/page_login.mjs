// A gateway that requires tokens: signing in and out, the cookie, and what other sites must not do.
//
//	node page_login.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, follow, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const may = ['status of 422', 'status of 401', 'status of 403', 'frame-ancestors'] // logged by the browser
const signIn = async (page, token = world.token) => {
  await page.fill('#token', token)
  await follow(page, page.locator('form.login button'))
}

await withBrowser(executablePath, browser => scenarios({
  'a token opens the page that was asked for': () => onPage(browser, world, { ...desktop, fresh: true, may }, async (page, context) => {
    await page.goto(`${world.base}/ui/runs?x=1`)
    assert.match(page.url(), /\/ui\/login\?next=/)
    assert.deepEqual(await axe(page), [])
    assert.equal(await page.locator('nav').count(), 0)
    await signIn(page, 'wrong-token-of-somebody')
    assert.ok(await page.locator('[role=alert]').isVisible())
    assert.deepEqual(await axe(page), [])
    assert.doesNotMatch(await page.content(), /wrong-token-of-somebody/)
    assert.equal((await context.cookies()).length, 0)
    await signIn(page)
    assert.equal(page.url(), `${world.base}/ui/runs?x=1`)
    const [cookie, ...more] = await context.cookies()
    assert.equal(more.length, 0)
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path], ['ibid_session', true, 'Lax', '/'])
    assert.equal(await page.evaluate(() => document.cookie), '')
    await page.goto(`${world.base}/`)
    assert.doesNotMatch(await page.content(), new RegExp(world.token))
    await follow(page, page.getByRole('button', { name: 'Sign out' }))
    assert.match(page.url(), /\/ui\/login/)
    assert.equal((await context.cookies()).length, 0)
    await page.goto(`${world.base}/ui/answers/${world.answers.heron}`)
    assert.match(page.url(), /\/ui\/login/)
  }),
  'on a phone': () => onPage(browser, world, { ...phone, fresh: true }, async page => {
    await page.goto(`${world.base}/ui/login`)
    assert.deepEqual(await overflow(page), [])
    await signIn(page)
    assert.deepEqual(await overflow(page), [])
  }),
  'no way to other sites': () => onPage(browser, world, { ...desktop, fresh: true, may }, async page => {
    for (const next of ['https://harm.example/', '//harm.example/', '/\\harm.example', 'javascript:alert(1)']) {
      await page.goto(`${world.base}/ui/login?next=${encodeURIComponent(next)}`)
      await signIn(page)
      assert.equal(new URL(page.url()).origin, world.base)
      await page.context().clearCookies()
    }
  }),
  'another site sends nothing in a reader’s name': () => onPage(browser, world, { ...desktop, fresh: true, may }, async (page, context) => {
    await page.goto(`${world.base}/ui/login`)
    await signIn(page)
    // What a browser sends from another site's page: it names that site, whatever the page does.
    for (const [path, body] of [['/ui/feedback', `answer=${world.answers.heron}&verdict=right`], ['/ui/ask', 'question=x'], ['/ui/logout', ''], ['/ui/login', `token=${world.token}`]]) {
      await page.goto(`${world.foreign}/post?to=${encodeURIComponent(world.base + path)}&${body.replaceAll('=', '%3D').replaceAll('&', '%26').replace(/^/, 'body=')}`)
      const [response] = await Promise.all([page.waitForResponse(r => r.url() === world.base + path), page.locator('button').click()])
      assert.ok([401, 403].includes(response.status()), `${path}: ${response.status()}`)
    }
    assert.equal((await context.cookies(world.base)).length, 1)
    await page.goto(`${world.base}/ui/feedback`)
    assert.doesNotMatch(await page.textContent('main'), /Right/)
    await page.goto(`${world.foreign}/frame?of=${encodeURIComponent(world.base + '/')}`)
    const frame = page.frames().find(f => f !== page.mainFrame())
    assert.doesNotMatch(await frame.content(), /Overview/)
  }),
}))
