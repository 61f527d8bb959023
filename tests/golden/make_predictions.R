# Standard errors and limits of predictions by Cox models: writes predictions.json.
# Rscript make_predictions.R, in this folder.
library(survival)
number<-function(x) ifelse(is.na(x),"null",sprintf("%.15g",x))
json<-function(x){
  if(is.list(x)) return(paste0("{",paste(sprintf("\"%s\":%s",names(x),sapply(x,json)),collapse=","),"}"))
  if(is.character(x)) return(sprintf("\"%s\"",x))
  if(is.matrix(x)) return(paste0("[",paste(apply(x,1,json),collapse=","),"]"))
  paste0("[",paste(number(x),collapse=","),"]")
}
# Row by row, because quantile() fails for the logit and arcsine limits of several rows.
curve<-function(f,new,times,conf="log-log"){
  each<-lapply(seq_len(nrow(new)),function(i){
    s<-survfit(f,newdata=new[i,],conf.type=conf); k<-findInterval(times,s$time)+1; q<-quantile(s,c(0.25,0.5))
    if(conf=="logit"||conf=="arcsin") q<-NULL
    c(list(surv=c(1,s$surv)[k],std_err=c(0,s$surv*s$std.err)[k],lower=c(1,s$lower)[k],upper=c(1,s$upper)[k],
      chaz=c(0,s$cumhaz)[k],std_chaz=c(0,s$std.err)[k]),if(!is.null(q)) list(quantile=q$quantile,quantile_lower=q$lower,quantile_upper=q$upper)) })
  sapply(names(each[[1]]),function(n) t(sapply(each,function(e) unname(e[[n]]))),simplify=FALSE) }
exact<-coxph.control(eps=1e-14,iter.max=50)
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival"))))

lung<-read.csv("lung.csv")
lung<-lung[complete.cases(lung[,c("time","event","age","sex","ph.ecog","wt.loss")]),]
new<-data.frame(age=c(50,70),sex=c(1,2),ph.ecog=c(0,2),wt.loss=c(0,10)); times<-c(5,100,365,700)
lung$w<-rep(1:3,length.out=nrow(lung)); lung$o<-lung$age/50
for(ties in c("breslow","efron")){
  f<-coxph(Surv(time,event==1)~age+sex+ph.ecog+wt.loss,lung,ties=ties,control=exact)
  for(conf in c("log-log","log","plain","logit","arcsin")) out$lung[[ties]][[conf]]<-curve(f,new,times,conf)
  f<-coxph(Surv(time,event==1)~age+sex+ph.ecog+wt.loss,lung,ties=ties,weights=w,control=exact)
  out$lung[[paste0(ties,"_weighted")]]<-curve(f,new,times)
  f<-coxph(Surv(time,event==1)~sex+ph.ecog+offset(o),lung,ties=ties,control=exact)
  out$lung[[paste0(ties,"_offset")]]<-curve(f,cbind(new,o=new$age/50),times)
  f<-coxph(Surv(time,event==1)~age+wt.loss+ph.ecog+strata(sex),lung,ties=ties,control=exact)
  for(k in 1:2){ same<-new; same$sex<-k; out$lung[[paste0(ties,"_stratum_",k)]]<-curve(f,same,times) }
}

lung$month<-ceiling(lung$time/30)
f<-coxph(Surv(month,event==1)~age+sex+ph.ecog+wt.loss,lung,ties="exact",control=exact)
out$lung$exact<-curve(f,new,c(3,12,24))

heart<-read.csv("heart.csv")
new<-data.frame(age=c(-5,5),year=c(2,5),surgery=c(1,0),transplant=c(0,1)); times<-c(10,100,500,1000)
for(ties in c("breslow","efron")){
  f<-coxph(Surv(start,stop,event)~age+year+surgery+transplant,heart,ties=ties,control=exact)
  out$heart[[ties]]<-curve(f,new,times)
}

# A covariate without effect: the robust variance is that of the Nelson-Aalen estimate.
set.seed(3)
alone<-data.frame(time=lung$time,event=lung$event==1,id=rep(1:60,length.out=nrow(lung)),w=rep(c(0.5,1.5,1,2.25),length.out=nrow(lung)))
s<-survfit(Surv(time,event)~1,alone,weights=w,id=id,robust=TRUE,stype=2,ctype=1)
a<-summary(s,times=c(50,200,365,700))
out$nelson_aalen<-list(chaz=a$cumhaz,std_chaz=a$std.chaz)
s<-survfit(Surv(time,event)~1,alone,weights=w,cluster=seq_len(nrow(alone)),robust=TRUE,stype=2,ctype=1)
a<-summary(s,times=c(50,200,365,700))
out$nelson_aalen_rows<-list(chaz=a$cumhaz,std_chaz=a$std.chaz)
# Reverse Kaplan-Meier: the median of the time to censoring.
r<-survfit(Surv(time,event==0)~sex,lung,conf.type="log-log")
out$follow_up<-list(table=unname(summary(r)$table[,c("median","0.95LCL","0.95UCL")]),
  quartile=unname(quantile(r,0.25)$quantile[,1]))
r<-survfit(Surv(time,event==0)~1,lung,weights=w,conf.type="log-log")
out$follow_up_weighted<-list(median=unname(quantile(r,0.5)$quantile),lower=unname(quantile(r,0.5)$lower),upper=unname(quantile(r,0.5)$upper))
writeLines(json(out),"predictions.json")
