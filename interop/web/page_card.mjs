// Chips, cards, panels and how people use them: by mouse, touch and keyboard.
//
//	node page_card.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, median, onPage, overflow, phone, refused, scenarios, settled, tablet, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const at = name => `${world.base}/ui/answers/${world.answers[name]}`
const card = 'ibid-card:popover-open'
const chip = (page, n = 0) => page.locator('.prose .chip').nth(n)
const lit = page => page.locator('.prose mark.claim.on')

/** Whether a card is in the top layer, entirely inside the window, and above everything else. */
const onTop = page => page.evaluate(selector => {
  const card = document.querySelector(selector), r = card.getBoundingClientRect()
  const middle = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)
  return {
    inside: r.left >= 0 && r.top >= 0 && r.right <= innerWidth + 1 && r.bottom <= innerHeight + 1,
    over: card === middle || card.contains(middle), width: r.width, height: r.height, bottom: r.bottom,
  }
}, card)

await withBrowser(executablePath, browser => scenarios({
  'a card opens under the pointer, and stays while it crosses over': () => onPage(browser, world, { ...tablet, fresh: true }, async page => {
    const [until, shut] = [120, 260] // ms; on the test's own clock, however slow the machine is
    await page.clock.install()
    await page.goto(at('report'))
    await page.clock.pauseAt(Date.now() + 60_000)
    const isOpen = () => page.locator(card).count()
    await chip(page).hover()
    await page.clock.runFor(until - 1)
    assert.equal(await isOpen(), 0, 'it opens at once')
    await page.clock.runFor(1)
    assert.equal(await isOpen(), 1, 'it did not open')
    assert.match(await page.textContent(card), /Area of the marsh/)
    assert.match(await page.textContent(card), /312 hectares/)
    assert.ok(await lit(page).count() > 0, 'no words are marked')
    assert.match((await lit(page).allTextContents()).join(''), /It covers 312 hectares/)
    await settled(page)
    const box = await page.locator(card).boundingBox()
    await page.mouse.move(5, 700) // off the chip, as if crossing the gap
    await page.clock.runFor(shut - 1)
    await page.mouse.move(box.x + 30, box.y + 10)
    await page.clock.runFor(10_000)
    assert.equal(await isOpen(), 1, 'it closed under the pointer')
    const { inside, over } = await onTop(page)
    assert.ok(inside && over)
    await page.mouse.move(5, 700)
    await page.clock.runFor(shut)
    assert.equal(await isOpen(), 0, 'it stays behind the pointer')
    assert.equal(await lit(page).count(), 0)
    await page.clock.resume()
    await chip(page).hover()
    await page.waitForSelector(card)
    assert.deepEqual(await axe(page), [])
  }),
  'a picture of a card': async () => {
    if (!world.images) return
    await onPage(browser, world, desktop, async page => {
      await page.goto(`${world.demo}/ui/conversations/herons`)
      await chip(page).hover()
      await page.waitForSelector(card)
      await settled(page)
      await page.screenshot({ path: `${world.images}/card.png` })
    })
  },
  'a card that was hovered by chance does not open': () => onPage(browser, world, { ...tablet, fresh: true }, async page => {
    await page.clock.install()
    await page.goto(at('report'))
    await page.clock.pauseAt(Date.now() + 60_000)
    await chip(page).hover()
    await page.clock.runFor(100)
    await page.locator('h1').hover()
    await page.clock.runFor(10_000)
    assert.equal(await page.locator('ibid-card').count(), 0)
  }),
  'a card that was closed stays closed while the pointer rests': () => onPage(browser, world, { ...tablet, fresh: true }, async page => {
    await page.goto(at('heron'))
    await chip(page).click()
    await page.waitForSelector(card)
    await page.keyboard.press('Escape')
    await page.waitForSelector(card, { state: 'detached' })
    await page.clock.install()
    for (const moved of [2, 4, 0]) { // the page moves under the pointer: the chip moves away from it and back
      await page.evaluate(lines => new Promise(done => {
        document.querySelector('.prose').style.translate = `0 ${lines}rem`
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))
      }), moved)
    }
    await page.clock.runFor(10_000)
    assert.equal(await page.locator(card).count(), 0, 'it opened under a pointer that nobody moved')
    const box = await chip(page).boundingBox()
    await page.mouse.move(box.x + 2, box.y + 200)
    await page.mouse.move(box.x + 3, box.y + box.height / 2)
    await page.clock.runFor(10_000)
    await page.waitForSelector(card)
  }),
  'the keyboard opens and closes it, and focus comes back': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('heron'))
    await chip(page).focus()
    assert.equal(await chip(page).getAttribute('aria-haspopup'), 'dialog')
    await page.keyboard.press('Enter')
    await page.waitForSelector(card)
    assert.ok(await page.evaluate(s => document.querySelector(s).contains(document.activeElement), card), 'the focus is not in the card')
    assert.equal(await chip(page).getAttribute('aria-expanded'), 'true')
    const heard = await page.locator(card).ariaSnapshot()
    assert.match(heard, /dialog "Source: 1 birds\.example"/)
    await page.keyboard.press('Tab')
    assert.ok(await page.evaluate(s => document.querySelector(s).contains(document.activeElement), card), 'Tab leaves the card at once')
    await page.keyboard.press('Escape')
    await page.waitForSelector(card, { state: 'detached' })
    assert.ok(await chip(page).evaluate(e => e === document.activeElement), 'the focus did not come back')
    assert.equal(await chip(page).getAttribute('aria-expanded'), 'false')
    await page.keyboard.press('Space')
    await page.waitForSelector(card)
    await page.mouse.click(5, 700)
    await page.waitForSelector(card, { state: 'detached' })
  }),
  'beside the text, a chip opens its sources there': () => onPage(browser, world, desktop, async page => {
    await page.goto(at('heron'))
    const active = () => page.locator('.source.active').evaluateAll(all => all.map(e => e.id))
    await chip(page, 1).click()
    assert.deepEqual(await active(), ['s-2'])
    assert.match((await lit(page).allTextContents()).join(''), /single pair in 1968/)
    await page.mouse.move(5, 700)
    assert.equal(await page.locator('#s-2.on').count(), 1, 'it is not marked behind the pointer')
    await chip(page, 2).click() // has two sources
    assert.deepEqual(await active(), ['s-1', 's-3'])
    await chip(page).focus()
    await page.keyboard.press('Enter')
    assert.deepEqual(await active(), ['s-1'])
    assert.equal(await page.evaluate(() => document.activeElement.id), 's-1', 'the focus is not in the source')
    await page.keyboard.press('Escape')
    assert.ok(await chip(page).evaluate(e => e === document.activeElement), 'the focus did not come back')
    assert.equal(await page.locator(card).count(), 0)
    assert.deepEqual(await axe(page), [])
  }),
  'words, chip and row light up together, both ways': () => onPage(browser, world, desktop, async page => {
    await page.goto(at('heron'))
    await page.locator('.prose mark.claim').first().hover()
    await page.waitForSelector('ibid-cite.on')
    assert.equal(await page.locator('.source.on').count(), 1)
    await page.locator('#s-2').hover()
    assert.match((await lit(page).allTextContents()).join(''), /single pair in 1968/)
    await settled(page)
    const colours = await lit(page).first().evaluate(e => [getComputedStyle(e).backgroundColor, getComputedStyle(e.closest('p')).backgroundColor])
    assert.notEqual(colours[0], colours[1])
  }),
  'in a table, a card is not cut off': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('cells'))
    const last = page.locator('.prose td .chip').last()
    await last.scrollIntoViewIfNeeded()
    await last.click()
    await page.waitForSelector(card)
    const { inside, over, height } = await onTop(page)
    assert.ok(inside && over && height > 60)
  }),
  'a source opens at its passage': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('report'))
    await chip(page).click()
    const passage = page.locator(`${card} a[href*="#:~:text="]`).first()
    assert.equal(await passage.getAttribute('href'), 'https://marsh.example/area#:~:text=312%20hectares%2C%20of%20which%2040%20are%20reed.')
    assert.match(await passage.getAttribute('rel'), /noopener/)
  }),
  'a panel opens beside the answer, with the way back': () => onPage(browser, world, desktop, async page => {
    await page.goto(at('report'))
    const details = page.locator('a.to-panel').first()
    await details.click()
    await page.waitForSelector('#panel .source-panel')
    assert.match(await page.textContent('#panel'), /Area of the marsh/)
    assert.deepEqual(await axe(page), [])
    assert.deepEqual(await overflow(page), [])
    const marks = await page.locator('#panel .excerpt mark').allTextContents()
    const said = await page.locator('#panel .panel-quote').allTextContents()
    for (const m of marks) assert.ok('312 hectares, of which 40 are reed.'.includes(m), `marked: ${m}`)
    console.log(`  the panel marks ${marks.length} of ${said.length} quotes`)
    await page.locator('#panel .panel-close').click()
    await page.waitForSelector('#panel', { state: 'hidden' })
    assert.ok(await details.evaluate(e => e === document.activeElement), 'the focus did not come back')
    await page.goForward()
    await page.waitForSelector('#panel .source-panel')
    await page.goBack()
    await page.waitForSelector('#panel', { state: 'hidden' })
    await page.goto(`${at('report')}/sources/1`)
    assert.match(await page.textContent('main'), /Area of the marsh/)
  }),
  'on a phone, a tap opens a sheet from below': () => onPage(browser, world, phone, async page => {
    await page.goto(at('report'))
    await chip(page).tap()
    await page.waitForSelector(card)
    await settled(page)
    const { inside, over, width, height, bottom } = await onTop(page)
    assert.ok(inside && over)
    assert.equal(Math.round(width), 390)
    assert.equal(Math.round(bottom), 844)
    assert.ok(height <= 844 * 0.6 + 1, `${height} high`)
    assert.deepEqual(await overflow(page), [])
    assert.deepEqual(await axe(page), [])
    const small = await page.evaluate(selector => [...document.querySelectorAll(`${selector} a, ${selector} button, .prose .chip`)].filter(e => {
      const r = e.getBoundingClientRect(), after = parseFloat(getComputedStyle(e, '::after').height) || 0
      return e.checkVisibility() && Math.max(r.height, after) < 23.5
    }).map(e => `${e.textContent.trim()} ${e.getBoundingClientRect().height}`), card)
    assert.deepEqual(small.filter(s => !/Area of the marsh|Species/.test(s)), [], 'targets are too small')
    if (world.images) await page.screenshot({ path: `${world.images}/answer-phone.png` })
    await page.evaluate(() => scrollTo(0, 0))
    await page.locator('h1').tap({ position: { x: 5, y: 5 } })
    await page.waitForSelector(card, { state: 'detached' })
    await page.locator('.to-sources').tap()
    await page.locator('a.to-panel').first().tap()
    await page.waitForSelector('dialog.sheet[open] .source-panel')
    assert.deepEqual(await overflow(page), [])
    await page.locator('dialog.sheet .panel-close').tap()
    await page.waitForSelector('dialog.sheet', { state: 'hidden' })
  }),
  'a reload shows the same': () => onPage(browser, world, { ...desktop, may: refused }, async page => {
    for (const name of ['report', 'hostile-gemini', 'maktaba']) {
      const text = async () => (await (await page.goto(at(name))).text())
      assert.equal(await text(), await text(), name)
    }
    await page.goto(`${world.base}/ui/conversations/tables`)
    const seen = () => page.locator('main').innerHTML()
    const first = await seen()
    await page.reload()
    assert.equal(await seen(), first)
  }),
  'a long quote is cut, and more of it is a tap away': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('hostile-anthropic'))
    await page.locator('.prose .chip', { hasText: 'long.example' }).click()
    await page.waitForSelector(card)
    const short = (await onTop(page)).height
    const more = page.locator(`${card} .more`).first()
    await more.click()
    await page.waitForFunction(([s, h]) => document.querySelector(s).getBoundingClientRect().height > h, [card, short])
    assert.match(await page.locator(card).innerText(), /along the ditch, to look at it/)
    await page.waitForFunction(s => { // it is repositioned when it has grown
      const r = document.querySelector(s).getBoundingClientRect()
      return r.top >= 0 && r.bottom <= innerHeight
    }, card)
  }),
  'a judgement is sent, and the page stays': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('heron'))
    await chip(page).click()
    const sent = page.waitForRequest(r => r.url().endsWith('/ui/feedback') && r.method() === 'POST')
    await page.locator(`${card} a.judge`).click()
    await page.locator(`${card} .judging button`, { hasText: 'Right' }).click()
    const body = new URLSearchParams((await sent).postData())
    assert.equal(body.get('verdict'), 'right')
    assert.equal(body.get('answer'), world.answers.heron)
    assert.ok(body.get('citation'))
    await page.waitForSelector(`${card} [role=status]`)
    assert.equal(page.url().split('#')[0], at('heron'))
    await page.goto(`${world.base}/ui/feedback`)
    assert.match(await page.textContent('main'), /right/i)
  }),
  'copy with sources': () => onPage(browser, world, { ...tablet, fresh: true, permissions: ['clipboard-read', 'clipboard-write'] }, async page => {
    await page.goto(at('heron'))
    await page.locator('a.copy').click()
    await page.waitForFunction(() => document.querySelector('a.copy').textContent === 'Copied')
    const text = await page.evaluate(() => navigator.clipboard.readText())
    assert.match(text, /^The colony at Lake Tonbo has 41 nests this year\. ?\[1\]/)
    assert.match(text, /Sources\n1\. Heron census at Lake Tonbo https:\/\/birds\.example\/tonbo\/census\n2\. /)
    await page.evaluate(() => {
      const marks = document.querySelectorAll('.prose mark.claim')
      getSelection().setBaseAndExtent(marks[1], 0, document.querySelectorAll('.prose ibid-cite')[1], 1)
    })
    await page.waitForFunction(() => document.querySelector('a.copy').textContent !== 'Copied')
    await page.locator('a.copy').click()
    await page.waitForFunction(() => document.querySelector('a.copy').textContent === 'Copied')
    const part = await page.evaluate(() => navigator.clipboard.readText())
    assert.match(part, /^It began with a single pair in 1968, after the mill had closed\. ?\[1\]\n\nSources\n1\. The lake and its birds/)
    await chip(page).click()
    await page.locator(`${card} .copy-card`).click()
    await page.waitForFunction(s => document.querySelector(`${s} .copy-card`).textContent === 'Copied', card)
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /Heron census at Lake Tonbo/)
  }),
  'what means harm does none': () => onPage(browser, world, { ...tablet, may: refused }, async page => {
    for (const name of ['hostile-gemini', 'hostile-anthropic']) {
      await page.goto(at(name))
      for (let n = 0; n < await page.locator('.prose .chip').count(); n++) {
        await chip(page, n).click()
        await page.waitForSelector(card)
        assert.equal(await page.locator(`${card} script, ${card} img, ${card} h1`).count(), 0)
        await page.keyboard.press('Escape')
        await page.waitForSelector(card, { state: 'detached' })
      }
      const odd = await page.evaluate(() => [...document.querySelectorAll('a[href]')].map(a => a.href).filter(h => !/^https?:/.test(h)))
      assert.deepEqual(odd, [])
      assert.equal(await page.locator('main img, main script, main style').count(), 0)
      assert.match(await page.title(), /ibid$/)
      for (const f of await page.locator('iframe').all()) assert.doesNotMatch(await f.getAttribute('sandbox'), /script|same-origin/)
    }
    assert.equal(await page.locator('body > h1').count(), 0)
  }),
  'the script of a card takes less than a frame': () => onPage(browser, world, { ...tablet, fresh: true }, async (page, context) => {
    await page.goto(at('fifty'))
    const cdp = await context.newCDPSession(page)
    await cdp.send('Performance.enable')
    const script = async () => (await cdp.send('Performance.getMetrics')).metrics.find(m => m.name === 'ScriptDuration').value * 1000
    const all = []
    for (let n = 0; n < 9; n++) {
      const before = await script()
      await chip(page, n).dispatchEvent('pointerover', { pointerType: 'mouse', bubbles: true, composed: true })
      await page.waitForFunction(([s, n]) => document.querySelectorAll('.prose .chip')[n].getAttribute('aria-expanded') === 'true' && document.querySelector(s), [card, n])
      all.push(await script() - before)
      await page.keyboard.press('Escape')
    }
    console.log(`  script for a hover card, with what the test itself runs: median ${median(all).toFixed(1)} ms, most ${Math.max(...all).toFixed(1)} ms`)
    assert.ok(median(all) < 500)
  }),
}))
